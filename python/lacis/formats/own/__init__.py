# SPDX-License-Identifier: Apache-2.0
"""Level kinds and bindings of the user's: classes whose methods run on symbols, for kernels, and on tensors."""

from .binding import BINDINGS, Mapped, binding, binding_texts
from .language import ctz, fori, load, popcount, where, whilei
from .level_kind import KINDS, LevelKind, array, kind, kind_texts

__all__ = [
    "BINDINGS", "KINDS", "LevelKind", "Mapped", "array", "binding", "binding_texts", "ctz", "fori", "kind",
    "kind_texts", "load", "popcount", "where", "whilei",
]  # fmt: skip

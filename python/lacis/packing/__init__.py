# SPDX-License-Identifier: Apache-2.0
"""Packing: torch tensors into formats and back."""

from .blocked_ell import from_blocked_ell
from .pack import pack
from .packed import PackedTensor

__all__ = ["PackedTensor", "from_blocked_ell", "pack"]

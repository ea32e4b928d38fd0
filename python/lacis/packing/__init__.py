# SPDX-License-Identifier: Apache-2.0
"""Packing: torch tensors into formats and back."""

from .blocked_ell import from_blocked_ell
from .pack import pack
from .packed import PackedTensor
from .semi_structured import from_semi_structured, to_semi_structured
from .sliced_ell import from_sliced_ell

__all__ = [
    "PackedTensor",
    "from_blocked_ell",
    "from_semi_structured",
    "from_sliced_ell",
    "pack",
    "to_semi_structured",
]

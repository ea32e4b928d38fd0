# SPDX-License-Identifier: Apache-2.0
"""Storage formats: levels over digits of the axes, as a value that prints and parses.

The promise of a level kind is `level.py`; each kind is one file in `kinds/`.
"""

from .axes import Axis, fuse, iter
from .companion import companion
from .compose import compose
from .digit import Digit
from .format import Format
from .level import Coordinate, Extent, Level, register
from .predefined import (
    Bcsc,
    BlockedEll,
    Bsr,
    Coo,
    CooTensor,
    Csc,
    CscTensor,
    Csf,
    Csr,
    CsrTensor,
    Dcsr,
    Dense,
    Ell,
    EllpackTensor,
    SparseTensor,
    as_format,
    is_format,
    words_of,
)
from .sum import Sum, decompose

__all__ = [
    "Axis", "Bcsc", "BlockedEll", "Bsr", "Coo", "CooTensor", "Coordinate", "Csc", "CscTensor", "Csf", "Csr",
    "CsrTensor", "Dcsr", "Dense", "Digit", "Ell", "EllpackTensor", "Extent", "Format", "Level", "SparseTensor",
    "Sum", "as_format", "companion", "compose", "decompose", "fuse", "is_format", "iter", "register",
    "words_of",
]  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Storage formats: levels over digits of the axes, as a value that prints and parses.

The promise of a level kind is `level.py`; each kind is one file in `kinds/`.
"""

from .axes import Axis, diagonal, fuse, iter, rank, slot
from .compact import Bitmap, Dia, NMFormat, Sell, TwoFour
from .companion import companion
from .compose import compose
from .digit import Digit
from .format import Format
from .grouped import Csb, GroupCoo, SrBcrs
from .hyb import Hyb
from .level import Coordinate, Extent, Level, Placed, register
from .own import LevelKind, array, binding, binding_texts, ctz, fori, kind, kind_texts, load, popcount, where, whilei
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
from .rule import Rule, digit, nnz
from .sum import Sum, decompose, split_part

__all__ = [
    "Axis", "Bcsc", "Bitmap", "BlockedEll", "Bsr", "Coo", "CooTensor", "Coordinate", "Csb", "Csc", "CscTensor", "Csf",
    "Csr", "CsrTensor", "Dcsr", "Dense", "Dia", "Digit", "Ell", "EllpackTensor", "Extent", "Format", "GroupCoo", "Hyb",
    "Level", "LevelKind", "NMFormat", "Placed", "Rule", "Sell", "SparseTensor", "SrBcrs", "Sum", "TwoFour", "array",
    "as_format", "binding", "binding_texts", "companion", "compose", "ctz", "decompose", "diagonal", "digit", "fori",
    "fuse", "is_format", "iter", "kind", "kind_texts", "load", "nnz", "popcount", "rank", "register", "slot",
    "split_part", "where", "whilei", "words_of",
]  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Predefined formats that hold entries in groups of a size: of a row, of a column, of a block."""

from __future__ import annotations

from .axes import iter
from .format import Format


class GroupCoo(Format):
    """Groups of `g` entries of one row; a row's last group is padded.

    After "SparseTIR: Composable Abstractions for Sparse Compilation in Deep Learning" (ASPLOS 2023).

    >>> print(GroupCoo(4))
    #lacis.format<(i, j) -> (i : compressed<unique=false>, j : packed<4>)>
    """

    def __init__(self, g: int):
        self.g = g
        with iter(dim=2) as (I, J):
            self.indices = [I.compress(unique=False), J.compress().pack(g)]


class SrBcrs(Format):
    """Columns of `v` rows: compressed rows of blocks of `v` rows and one column, side by side.

    The strided block format of "Efficient Quantized Sparse Matrix Operations on Tensor Cores" (Li et al., SC 2022).

    >>> print(SrBcrs(8))
    #lacis.format<(i, j) -> (i floordiv 8 : dense, j : compressed, i mod 8 : dense)>
    """

    def __init__(self, v: int):
        self.v = v
        with iter(dim=2) as (I, J):
            i0, i1 = I.block(v)
            self.indices = [i0, J.compress(), i1]


class Csb(Format):
    """Compressed sparse blocks: a list of entries for each block of `b` by `b`, with its row and column in the block.

    These take 8 bits each up to `b` = 128, and 16 up to 32768.

    After "Parallel Sparse Matrix-Vector and Matrix-Transpose-Vector Multiplication Using Compressed Sparse Blocks"
    (Buluç et al., SPAA 2009).

    >>> print(", ".join(level.text(("i", "j")) for level in Csb(64).levels[2:]))
    i mod 64 : compressed<unique=false, crd=i8>, j mod 64 : singleton<crd=i8>
    """

    def __init__(self, b: int):
        self.b = b
        with iter(dim=2) as (I, J):
            (i0, i1), (j0, j1) = I.block(b), J.block(b)
            crd = "i8" if b <= 2**7 else "i16" if b <= 2**15 else None
            self.indices = [i0, j0, i1.compress(unique=False).widths(crd=crd), j1.follow().widths(crd=crd)]

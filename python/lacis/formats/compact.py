# SPDX-License-Identifier: Apache-2.0
"""Predefined formats that say where entries are in a few bits: n:m groups, bitmaps of blocks, diagonals, slices."""

from __future__ import annotations

from .axes import diagonal, fuse, iter, rank, slot
from .format import Format


class NMFormat(Format):
    """At most `n` of every `m` neighbours in a row, each with a code of a few bits: n:m sparsity. 1 <= n <= m.

    A group with more entries is refused when a tensor is packed; see the sparsifier `NM`. Raises `FormatError`.

    >>> print(NMFormat(1, 4))
    #lacis.format<(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<1>)>
    """

    def __init__(self, n: int, m: int):
        self.n, self.m = n, m
        with iter(dim=2) as (I, J):
            outer, inner = J.block(m)
            self.indices = [I, outer, inner.keep(n)]


class TwoFour(NMFormat):
    """Two of every four neighbours in a row, each with a code of two bits.

    >>> print(TwoFour())
    #lacis.format<(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<2>)>
    """

    def __init__(self):
        super().__init__(2, 4)


class Bitmap(Format):
    """Compressed rows of blocks, in each a bit for every element, and the values of those that are set.

    A block has at most 1024 elements. Raises `FormatError`.

    >>> print(Bitmap(4, 8))
    #lacis.format<(i, j) -> (i floordiv 4 : dense, j floordiv 8 : compressed, (i mod 4, j mod 8) : bitmap)>
    """

    def __init__(self, b0: int, b1: int):
        self.b0, self.b1 = b0, b1
        with iter(dim=2) as (I, J):
            (i0, i1), (j0, j1) = I.block(b0), J.block(b1)
            self.indices = [i0, j0.compress(), fuse(i1, j1).bitmap()]


class Dia(Format):
    """The diagonals that have entries, each with a value for every column, as SciPy has it.

    Values whose row lies outside are padding, and so are zeros in between. The arrays are those of `scipy.sparse`:
    `data` are the values, one row a diagonal, and `offsets` is `crd0` less the number of rows but one.

    >>> print(Dia())
    #lacis.format<(i, j) let d = j - i -> (d : compressed, j : range)>
    """

    def __init__(self):
        with iter(dim=2) as (I, J):
            self.indices = [diagonal(I, J).compress(), J.range()]


class Sell(Format):
    """Sliced ELL: `c` rows at a time as wide as the longest of them, rows sorted by length in windows of `sigma`.

    Values lie by slice, by place in the row, by row of the slice, as SELL-C-sigma has them; `perm0` is the order of the
    rows. Raises `FormatError` for sizes that are not positive. (Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014.)

    >>> print(", ".join(level.text(Sell(32, 128).names) for level in Sell(32, 128).levels))
    r floordiv 32 : dense, s : ragged, r mod 32 : dense, j : singleton<pad=true>
    """

    def __init__(self, c: int, sigma: int | None = None):
        self.c, self.sigma = c, sigma
        with iter(dim=2) as (I, J):
            r0, r1 = rank(I, within=sigma).block(c)
            self.indices = [r0, slot(J, within=I).ragged(), r1, J.follow(pad=True)]

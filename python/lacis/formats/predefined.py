# SPDX-License-Identifier: Apache-2.0
"""The predefined formats, written in the same words as a user's own."""

from __future__ import annotations

import inspect

from ..errors import FormatError
from ..nearest import nearest
from .axes import iter
from .compact import Dia, TwoFour
from .format import Format


class Csr(Format):
    """Compressed rows.

    >>> print(Csr())
    #lacis.format<(i, j) -> (i : dense, j : compressed)>
    """

    def __init__(self):
        with iter(dim=2) as (I, J):
            self.indices = [I, J.compress()]


class Csc(Format):
    """Compressed columns.

    >>> print(Csc())
    #lacis.format<(i, j) -> (j : dense, i : compressed)>
    """

    def __init__(self):
        with iter(dim=2) as (I, J):
            self.indices = [J, I.compress()]


class Dcsr(Format):
    """Compressed rows, of which only those with entries are stored.

    >>> print(Dcsr())
    #lacis.format<(i, j) -> (i : compressed, j : compressed)>
    """

    def __init__(self):
        with iter(dim=2) as (I, J):
            self.indices = [I.compress(), J.compress()]


class Ell(Format):
    """The same number of entries in every row; `width=None` is the longest row.

    >>> print(Ell(32))
    #lacis.format<(i, j) -> (i : dense, j : packed<32>)>
    """

    def __init__(self, width: int | None = None):
        self.width = width
        with iter(dim=2) as (I, J):
            self.indices = [I, J.compress().pack(width)]


class _AnyRank(Format):
    """A format that exists for every number of axes; without `dim` it takes the tensor's."""

    def __init__(self, dim: int | None = None):
        self.dim = dim
        with iter(dim=2 if dim is None else dim) as axes:
            self.indices = self.levels_of(axes)

    @property
    def any_rank(self):
        return self.dim is None

    def for_rank(self, rank):
        return type(self)(rank) if self.dim is None else super().for_rank(rank)


class Coo(_AnyRank):
    """One position per entry, with all its coordinates; duplicates are kept.

    >>> print(Coo())
    #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
    """

    @staticmethod
    def levels_of(axes):
        return [axes[0].compress(unique=False)] + [axis.follow() for axis in axes[1:]]


class Csf(_AnyRank):
    """Every axis compressed: a tree of fibres.

    >>> print(Csf(3))
    #lacis.format<(i, j, k) -> (i : compressed, j : compressed, k : compressed)>
    """

    @staticmethod
    def levels_of(axes):
        return [axis.compress() for axis in axes]


class Dense(_AnyRank):
    """Everything stored, row-major.

    >>> print(Dense())
    #lacis.format<(i, j) -> (i : dense, j : dense)>
    """

    @staticmethod
    def levels_of(axes):
        return list(axes)


class _Blocked(Format):
    """A block format; without sizes it takes them from `.block(...)`."""

    def __init__(self, b0: int | None = None, b1: int | None = None):
        if (b0 is None) != (b1 is None):
            raise FormatError(f"'{type(self).__name__}' needs both block sizes, or none and .block(b0, b1)")
        self.b0, self.b1 = b0, b1
        self.sizes = None if b0 is None else (b0, b1)
        if self.sizes is not None:
            with iter(dim=2) as (I, J):
                (i0, i1), (j0, j1) = I.block(b0), J.block(b1)
                self.indices = [*self.grid(i0, j0), i1, j1]

    def bind(self, *sizes):
        if self.sizes is None:
            return self.with_sizes(*sizes)
        if sizes != self.sizes:
            raise FormatError(
                f"'{type(self).__name__}' has blocks of {self.sizes}, .block() says {sizes}; give one of them"
            )
        return self

    def with_sizes(self, b0, b1):
        return type(self)(b0, b1)

    def _parts(self):
        if self.sizes is None:
            raise FormatError(f"'{type(self).__name__}' has no block sizes yet; give them, or call .block(b0, b1)")
        return super()._parts()


class Bsr(_Blocked):
    """Compressed rows of dense blocks.

    >>> print(Bsr(16, 16))
    #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
    """

    @staticmethod
    def grid(i, j):
        return i, j.compress()


class Bcsc(_Blocked):
    """Compressed columns of dense blocks.

    >>> print(Bcsc(16, 16))
    #lacis.format<(i, j) -> (j floordiv 16 : dense, i floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
    """

    @staticmethod
    def grid(i, j):
        return j, i.compress()


class BlockedEll(_Blocked):
    """The same number of dense blocks in every row of blocks; `width=None` is the longest row.

    >>> print(BlockedEll(4, 8, width=2))
    #lacis.format<(i, j) -> (i floordiv 4 : dense, j floordiv 8 : packed<2>, i mod 4 : dense, j mod 8 : dense)>
    """

    def __init__(self, b0: int | None = None, b1: int | None = None, width: int | None = None):
        self.width = width
        super().__init__(b0, b1)

    def grid(self, i, j):
        return i, j.compress().pack(self.width)

    def with_sizes(self, b0, b1):
        return type(self)(b0, b1, width=self.width)


# The spelling of the proposal.
SparseTensor = Format
CsrTensor = Csr
CscTensor = Csc
CooTensor = Coo
EllpackTensor = Ell


_PREDEFINED = {
    cls.__name__.lower(): cls for cls in (Bcsc, BlockedEll, Bsr, Coo, Csc, Csf, Csr, Dcsr, Dense, Dia, Ell, TwoFour)
}


def as_format(format):
    """A format from a format, a sum, a format class, the name of a predefined one, or text. Raises `FormatError`.

    >>> as_format(Csr) == as_format("csr") == as_format("(i, j) -> (i : dense, j : compressed)")
    True
    """
    from .sum import Sum

    if isinstance(format, str):
        format = _of_name(format) if format.strip().isidentifier() else Format.parse(format)
    if isinstance(format, type) and issubclass(format, Format):
        format = _made(format)
    if not isinstance(format, (Format, Sum)):
        what = format.__name__ if isinstance(format, type) else type(format).__name__
        raise FormatError(f"expected a format, as lacis.Csr, 'csr' or '(i, j) -> (i : dense, ...)', not {what}")
    return format


def _made(cls: type[Format]) -> Format:
    needed = [name for name, each in inspect.signature(cls).parameters.items() if each.default is each.empty]
    if needed:
        raise FormatError(f"'{cls.__name__}' needs its {', '.join(needed)}: {cls.__name__}(8), say")
    return cls()


def is_format(value) -> bool:
    """Is this a format, a sum, or a class of formats? Names and text are not.

    >>> is_format(Csr), is_format(Csr()), is_format("csr")
    (True, True, False)
    """
    from .sum import Sum

    return isinstance(value, (Format, Sum)) or (isinstance(value, type) and issubclass(value, Format))


def _of_name(name: str) -> type[Format]:
    found = _PREDEFINED.get(name.strip().lower().replace("_", ""))
    if found is None:
        known = ", ".join(_PREDEFINED)
        raise FormatError(f"no format '{name}'{nearest(name, _PREDEFINED)}; the predefined ones are {known}")
    return found


def words_of(format) -> str:
    """A format as it is written in Python: its class, with the arguments that it keeps under their names.

    >>> words_of(Ell(width=8)), words_of(Bsr(4, 8)), words_of(Csr())
    ('Ell(width=8)', 'Bsr(4, 8)', 'Csr')
    """
    from .sum import Sum

    cls = type(format)
    if cls is Format:
        return str(format)
    given = []
    for name, parameter in inspect.signature(cls).parameters.items():
        value = getattr(format, name, parameter.default)
        if cls is not Sum and value is not parameter.default and value != parameter.default:
            given.append(f"{value!r}" if name in ("b0", "b1") else f"{name}={value!r}")
    return f"{cls.__name__}({', '.join(given)})" if given else cls.__name__

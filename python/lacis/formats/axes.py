# SPDX-License-Identifier: Apache-2.0
"""The language of formats of one's own: axes, and verbs that say how each is stored."""

from __future__ import annotations

import contextlib
import dataclasses

from ..errors import FormatError
from .digit import Digit
from .bindings import Affine, Rank, Slot
from .kinds.batch import Batch
from .kinds.bitmap import Bitmap
from .kinds.code import Code
from .kinds.delta import Delta
from .kinds.fixed import Fixed
from .kinds.full import Full
from .kinds.implicit import Implicit
from .kinds.one import One
from .kinds.range import Range
from .kinds.stored import Stored
from .kinds.user import User
from .kinds.var import Var
from .level import Level


class Axis:
    """An axis, a block digit of one, or several fused; dense until a verb says otherwise."""

    def __init__(self, rank: int, digits: tuple[Digit, ...], bindings: list | None = None):
        self.rank = rank
        self.digits = digits
        self.bindings = [] if bindings is None else bindings  # of the format, shared by its axes
        self.extent = Full()
        self.coordinate = Implicit()
        self._widths: dict[str, str] = {}

    def compress(self, coordinate: bool = True, unique: bool = True) -> "Axis":
        """Store only what is there: `dense -> compressed` (`ragged` without a coordinate).

        `unique=False` lets a coordinate repeat as the level below demands: once an entry for `follow()`.
        """
        if isinstance(self.extent, Full):
            self.extent = Var()
        self.coordinate = Stored(unique=unique) if coordinate else Implicit()
        return self

    def follow(self, pad: bool = False) -> "Axis":
        """One position under each parent: `singleton`, the second level of COO; with `pad` some hold no entry."""
        self.extent = One()
        self._store()
        if pad:
            self.coordinate = dataclasses.replace(self.coordinate, pad=True)
        return self

    def pack(self, width: int | None = None) -> "Axis":
        """The same number of positions under each parent: `compressed -> packed` (ELL).

        `width=None` is the longest fibre, found when a tensor is packed.
        """
        if width is not None:
            _check_width(width)
        self.extent = Fixed(width)
        return self

    def ragged(self) -> "Axis":
        """A prefix of the coordinates, as long as it must be: `dense -> ragged`; nothing but its length is stored.

        The same as `compress(coordinate=False)`.
        """
        return self.compress(coordinate=False)

    def bitmap(self) -> "Axis":
        """One bit for each coordinate, 1024 at the most: `dense -> bitmap`; values are packed.

        After `pack(n)` each fibre has room for n values.

        >>> with iter(dim=2) as (I, J):
        ...     outer, inner = J.block(32)
        >>> inner.bitmap().level().text(("i", "j"))
        'j mod 32 : bitmap'
        """
        return self._listed(Bitmap())

    def delta(self, bits: int = 8) -> "Axis":
        """The distance to the coordinate before, in 8 or 16 bits: `dense -> var*delta<8>`. Raises `FormatError`.

        A gap of 2**bits - 1 coordinates or more takes positions without an entry, whose values are padding.
        """
        if bits not in (8, 16):
            raise FormatError(f"a delta has 8 or 16 bits, not {bits!r}")
        return self._listed(Delta(bits))

    def keep(self, n: int) -> "Axis":
        """At most `n` of the coordinates of a block: `dense -> structured<n>`, a few bits an entry (2:4).

        >>> with iter(dim=2) as (I, J):
        ...     outer, inner = J.block(4)
        >>> inner.keep(2).level().text(("i", "j"))
        'j mod 4 : structured<2>'
        """
        _check_width(n)
        self.extent, self.coordinate = Fixed(n), Code()
        return self

    def range(self) -> "Axis":
        """A position for each coordinate that is left where an axis follows from a diagonal: `dense -> range`."""
        self.extent, self.coordinate = Range(), Implicit()
        return self

    def batch(self) -> "Axis":
        """Values only: what comes after it is one pattern for all its coordinates, such as the heads of attention.

        >>> with iter(dim=3) as (H, I, J):
        ...     H.batch().level().text(("h", "i", "j"))
        'h : batch'
        """
        self.extent, self.coordinate = Batch(), Implicit()
        return self

    def kind(self, kind) -> "Axis":
        """A level kind of one's own, a class that `lacis.kind` decorated: `dense -> @name`. Raises `FormatError`."""
        symbol = getattr(kind, "_symbol", "")
        if not symbol:
            raise FormatError(f"kind: {kind!r} is no class that lacis.kind decorated")
        self.extent = self.coordinate = User(symbol)
        return self

    def block(self, size: int) -> tuple["Axis", "Axis"]:
        """Cut into blocks: `i -> (i floordiv size, i mod size)`. The axis itself is used up."""
        if len(self.digits) != 1:
            raise FormatError("block an axis before it is fused")
        outer, inner = self.digits[0].block(size)
        return Axis(self.rank, (outer,), self.bindings), Axis(self.rank, (inner,), self.bindings)

    def widths(self, pos: str | None = None, crd: str | None = None) -> "Axis":
        """The integer types of its arrays, "i8" to "i64": `compressed -> compressed<crd=i16>`.

        Of a dense axis `crd` is the type in which companions list its coordinates: `dense -> dense<crd=i16>`. Packing
        refuses numbers that do not fit. Left out, they are i32, or i64 where a tensor needs it, and in the weight of a
        layer i16 or i8 where its size allows it.
        """
        for name, width in (("pos", pos), ("crd", crd)):
            if width not in (None, "i8", "i16", "i32", "i64"):
                raise FormatError(f"'{name}' must be an integer type: i8, i16, i32 or i64, not {width!r}")
            if width is not None:
                self._widths[name] = width
        return self

    def level(self) -> Level:
        kinds = [self.extent, self.coordinate]
        for name, width in self._widths.items():
            at = next((n for n, kind in enumerate(kinds) if _has_type(kind, name)), None)
            if at is None:
                raise FormatError(
                    f"'{Level(self.digits, *kinds).kind}' has no array '{name}'; leave widths({name}=) out"
                )
            kinds[at] = dataclasses.replace(kinds[at], **{name: width})
        return Level(self.digits, *kinds)

    def _listed(self, coordinate) -> "Axis":
        if isinstance(self.extent, Full):
            self.extent = Var()
        self.coordinate = coordinate
        return self

    def _store(self) -> None:
        if isinstance(self.coordinate, Implicit):
            self.coordinate = Stored()


def _has_type(kind, name: str) -> bool:
    """May the format say an integer type by this name: of an array, or of coordinates that only companions list?"""
    return name in kind.buffers() or isinstance(kind, Implicit) and name == "crd"


def _check_width(width) -> None:
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise FormatError(f"a width must be a positive integer, not {width!r}")


def fuse(*axes: Axis) -> Axis:
    """One level over several axes: `(i, j)`, one coordinate with the first axis most significant."""
    if not axes:
        raise FormatError("fuse needs at least one axis")
    return Axis(axes[0].rank, tuple(digit for axis in axes for digit in axis.digits), axes[0].bindings)


def diagonal(rows: Axis, columns: Axis) -> Axis:
    """The axis of the diagonals, `d = columns - rows`: 0 .. rows + columns - 2 from the lowest left one on.

    With it one of the two axes needs no level: it follows from the other. Raises `FormatError` for parts of axes.

    >>> with iter(dim=2) as (I, J):
    ...     D = diagonal(I, J)
    >>> D.compress().level().text(("i", "j", "d"))
    'd : compressed'
    """
    left, right = whole(columns, "a diagonal"), whole(rows, "a diagonal")
    return bound(rows, "d", Affine("d", left, "-", right))


def rank(axis: Axis, within: int | None = None) -> Axis:
    """The places of an axis whose coordinates are sorted by their number of entries, the most first.

    They are sorted in windows of `within` coordinates, or all (None). The order is stored, and the axis itself needs no
    level. Raises `FormatError` for a part of an axis.

    >>> with iter(dim=2) as (I, J):
    ...     outer, inner = rank(I, within=128).block(32)
    >>> outer.level().text(("i", "j", "r"))
    'r floordiv 32 : dense'
    """
    if within is not None:
        _check_width(within)
    return bound(axis, "r", Rank("r", whole(axis, "a rank"), within))


def slot(axis: Axis, within: Axis) -> Axis:
    """The place of an entry along `axis` among those with the same coordinate of `within`, in order: 0, 1, 2, ...

    No coordinate follows from a place, so that `axis` has a level besides, one position under each. Raises
    `FormatError` for a part of an axis.

    >>> with iter(dim=2) as (I, J):
    ...     S = slot(J, within=I)
    >>> S.ragged().level().text(("i", "j", "s"))
    's : ragged'
    """
    return bound(axis, "s", Slot("s", whole(axis, "a slot"), within.digits))


def whole(axis: Axis, what: str) -> int:
    """The number of an axis that is neither blocked nor fused nor bound."""
    if len(axis.digits) != 1 or axis.digits[0] != Digit(axis.digits[0].axis) or axis.digits[0].axis >= axis.rank:
        raise FormatError(f"{what} is made of whole axes, before they are blocked or fused")
    return axis.digits[0].axis


def bound(axis: Axis, letter: str, binding) -> Axis:
    """The axis of one more binding, whose name nobody has."""
    known = axis.bindings
    used = sum(each.name.startswith(letter) for each in known)
    known.append(dataclasses.replace(binding, name=f"{letter}{used or ''}"))
    return Axis(axis.rank, (Digit(axis.rank + len(known) - 1),), known)


@contextlib.contextmanager
def iter(dim: int = 2):
    """The axes of a tensor with `dim` dimensions.

    >>> with iter(dim=2) as (I, J):
    ...     outer, inner = J.block(4)
    >>> inner.compress().level().text(("i", "j"))
    'j mod 4 : compressed'
    """
    if isinstance(dim, bool) or not isinstance(dim, int) or not 1 <= dim <= 26:
        raise FormatError(f"a format has 1 to 26 axes, not {dim!r}")
    bindings: list = []
    yield tuple(Axis(dim, (Digit(axis),), bindings) for axis in range(dim))

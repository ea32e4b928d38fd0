# SPDX-License-Identifier: Apache-2.0
"""The promise of a level kind: what an extent and a coordinate must answer to be packed and read.

A level is `digits : extent * coordinate`. The *extent* says how many positions lie under each parent, the *coordinate*
how a position's coordinate is known. Both are frozen records in `kinds/`, one file each; the packer asks them and knows
none by name. A method that a kind does not have raises `FormatError` with the kind's name. Entries reach a level sorted
in level order, so the entries of one position are neighbours.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import torch

from ..errors import DataError, FormatError
from .digit import Digit
from .fibre import Buffers, Fibre, Placed, Positions


class _Kind:
    """What extents and coordinates share: a name, and arguments printed in one order."""

    name: ClassVar[str]
    has_code: ClassVar[bool] = False
    hint: ClassVar[str] = ""  # what to do where it has none
    positional: ClassVar[str | None] = None  # the field that is written without a name

    @property
    def spelling(self) -> str:  # in formats
        return self.name

    def buffers(self) -> tuple[str, ...]:
        """Names of the arrays it stores, `pos` before `crd`."""
        return ()

    def width_of(self, buffer: str) -> str | None:
        """The integer type that the format's text gives an array, or None."""
        value = getattr(self, buffer, None)
        return value if isinstance(value, str) and value != getattr(type(self), buffer, None) else None

    def with_width(self, buffer: str, width: str | None):
        """The same kind with this type for an array, None for no word of it; itself where it is not its own to type."""
        named = buffer in {field.name for field in dataclasses.fields(self)}
        return dataclasses.replace(self, **{buffer: width or getattr(type(self), buffer)}) if named else self

    def _refuse(self, what: str):
        raise FormatError(f"level kind '{self.name}' has no {what} yet; use dense, compressed, packed or bitmap")


class Extent(_Kind):
    """How many positions lie under one parent."""

    covers: ClassVar[bool] = False  # a position for every coordinate
    shares: ClassVar[bool] = False  # values alone have its coordinates, the levels below are one pattern
    follows: ClassVar[bool] = False  # one position under each parent
    pads: ClassVar[bool] = False  # positions without an entry are normal
    stands_alone: ClassVar[bool] = False  # written without digits
    gaps: ClassVar[bool] = False  # positions may lie under no parent
    counts: ClassVar[bool] = False  # its arrays alone say how many positions there are

    @property
    def capacity(self) -> int | None:
        """The most positions that a parent takes, where the format's text says so."""
        return None

    def refuses(self, coordinate: "Coordinate") -> str | None:
        """Why it cannot stand with a coordinate, and what to write instead; None when it can."""
        return None

    def place(self, fibre: Fibre) -> Placed:
        """Give each entry its position."""
        self._refuse("packing")

    def index(self, fibre: Fibre) -> torch.Tensor:
        """int64 [n]: the place of each entry's position within its fibre."""
        return fibre.position - fibre.starts()[fibre.parent]

    def read(self, buffers: Buffers, parents: int, size: int, device: torch.device) -> Positions:
        """All positions, from the arrays."""
        self._refuse("reading")

    def check(self, check: "Checker", buffers: Buffers, parents: int, size: int) -> int:
        """Refuse malformed arrays with `DataError`; return the number of positions."""
        self._refuse("validation")


class Coordinate(_Kind):
    """How the coordinate of a position is known."""

    implicit: ClassVar[bool] = False
    stored: ClassVar[bool] = False  # one number for each position
    per_position: ClassVar[str | None] = None  # the array that has an element for each position
    skips: ClassVar[bool] = False  # positions without an entry may lie between others
    fills: ClassVar[bool] = False  # positions without an entry may have coordinates, too
    unique: bool = True
    ordered: bool = True
    pad: bool | None = None  # None: as the extent

    def refuses_under(self, extent: Extent, digits: tuple[Digit, ...]) -> str | None:
        """Why it cannot stand under an extent, over these digits; None when it can."""
        return None

    def extra(self, fibre: Fibre) -> torch.Tensor | None:
        """int64 [n]: positions without an entry that it needs before that of each entry; None for none."""
        return None

    def place(self, fibre: Fibre, placed: Placed) -> dict[str, torch.Tensor]:
        """The arrays that hold the coordinates."""
        self._refuse("packing")

    def read(self, buffers: Buffers, positions: Positions, size: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        """int64 [slots] coordinates (0 where not valid), and bool [slots] or None when all are valid."""
        self._refuse("reading")

    def check(self, check: "Checker", buffers: Buffers, level: "Level", positions: Positions, size: int) -> None:
        """Refuse malformed arrays with `DataError`."""
        self._refuse("validation")


@dataclasses.dataclass(frozen=True)
class Checker:
    """Says which array is wrong, and where. `prefix` and `number` make the array's full name."""

    prefix: str
    number: int
    parents: int = 1  # positions of the level above
    slots: int | None = None  # positions that there are values for, of the last level above the stored blocks
    room: bool = False  # arrays with an element for each position may be longer

    def name(self, buffer: str) -> str:
        return f"{self.prefix}{buffer}{self.number}"

    def fail(self, buffer: str, message: str):
        raise DataError(f"'{self.name(buffer)}' {message}")

    def none(self, buffer: str, bad: torch.Tensor, message: str, values: torch.Tensor | None = None) -> None:
        """Raise at the first True of `bad`; `message` may use {at} and {value}."""
        flat = bad.reshape(-1)
        if not bool(flat.any()):
            return
        first = int(flat.to(torch.uint8).argmax())
        at = first if bad.ndim == 1 else tuple(int(v) for v in torch.unravel_index(torch.tensor(first), bad.shape))
        value = "" if values is None else values.reshape(-1)[first].item()
        place = f"[{at}]" if isinstance(at, int) else "[" + ", ".join(map(str, at)) + "]"
        raise DataError(f"'{self.name(buffer)}' at {place}: " + message.format(value=value))


@dataclasses.dataclass(frozen=True)
class Level:
    """`digits : extent * coordinate`; see `lacis.formats.text` for how it is written."""

    digits: tuple[Digit, ...]
    extent: Extent
    coordinate: Coordinate

    def __post_init__(self):
        if bool(self.digits) == self.extent.stands_alone:
            raise FormatError("a level needs at least one digit of an axis; only 'link' has none")
        if isinstance(self.extent, Coordinate) != isinstance(self.coordinate, Extent):
            both = f"'{self.extent.name}' and '{self.coordinate.name}'"
            raise FormatError(f"{both} do not combine: one of them is an extent and a coordinate, and stands alone")
        if reason := self.extent.refuses(self.coordinate) or self.coordinate.refuses_under(self.extent, self.digits):
            raise FormatError(reason)
        if self.coordinate.pad is not None and self.coordinate.pad == self.extent.pads:
            object.__setattr__(self, "coordinate", dataclasses.replace(self.coordinate, pad=None))

    @property
    def kind(self) -> str:
        """The name that messages use: the alias, or `extent*coordinate`."""
        from .text import kind_name

        return kind_name(self.extent, self.coordinate)

    @property
    def has_code(self) -> bool:
        return self.extent.has_code and self.coordinate.has_code

    @property
    def is_static(self) -> bool:
        """A dense level of one digit whose size the format's text gives: a dimension of a stored block."""
        return self.extent.covers and self.coordinate.implicit and len(self.digits) == 1 and self.digits[0].mod != 0

    @property
    def padded(self) -> bool:
        """May a position have no entry? Then a stored coordinate is -1."""
        return self.coordinate.skips or (self.extent.pads if self.coordinate.pad is None else self.coordinate.pad)

    @property
    def shows_entries(self) -> bool:
        """Do the arrays say of each position whether it holds an entry?"""
        listed = not self.coordinate.implicit or self.extent.stands_alone
        return listed and not self.extent.covers and not self.coordinate.fills

    def size(self, shape) -> int:
        """The number of coordinates on axes of lengths `shape`; of a batch one, as its pattern sees it."""
        return 1 if self.extent.shares else self.copies(shape)

    def copies(self, shape) -> int:
        """The number of coordinates, those of a batch too."""
        return math.prod([d.extent(shape) for d in self.digits])

    def buffers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.extent.buffers() + self.coordinate.buffers()))

    def coordinate_of(self, axes, shape):
        """The level coordinate of axis coordinates: mixed radix, first digit most significant."""
        crd = None
        for digit in self.digits:
            value = digit.of(axes[digit.axis])
            crd = value if crd is None else crd * digit.extent(shape) + value
        return crd

    def text(self, names) -> str:
        from .text import print_level

        return print_level(self, names)


EXTENTS: dict[str, type[Extent]] = {}
COORDINATES: dict[str, type[Coordinate]] = {}


def register(cls):
    """Class decorator: make a kind known to `Format.parse` under its `name`; as both where it is both."""
    if issubclass(cls, Extent):
        EXTENTS[cls.name] = cls
    if issubclass(cls, Coordinate):
        COORDINATES[cls.name] = cls
    return cls

# SPDX-License-Identifier: Apache-2.0
"""The companion of a format: an index of the same slots in another order, whose values are not copied."""

from __future__ import annotations

import dataclasses

from .digit import Digit
from .format import Format
from .kinds.full import Full
from .kinds.implicit import Implicit
from .kinds.link import Link
from .kinds.one import One
from .kinds.stored import Stored
from .kinds.var import Var
from .level import Level


def companion(format: Format, leading_axes) -> Format | None:
    """The format to walk `format` by `leading_axes`: dense levels over them, the rest as coordinates, then a link.

    Each axis takes one digit, as fine as its finest digit above the stored blocks; the levels of a stored block
    and those of a batch stay. None when nothing is left to compress.

    >>> from lacis.formats import Csc
    >>> print(companion(Csc(), [0]))
    #lacis.format<(i, j) -> (i : dense, j : compressed<unique=false>, link)>
    """
    finest: dict[int, int] = {}
    shared = {digit.axis for level in format.batch for digit in level.digits}
    for level in format.prefix:
        for digit in level.digits:
            if digit.axis >= format.rank:
                continue
            finest[digit.axis] = min(digit.div, finest.get(digit.axis, digit.div))
    if format.bindings:  # an axis without levels follows from them
        finest = {axis: finest.get(axis, 1) for axis in range(format.rank)}
    finest = {axis: div for axis, div in finest.items() if axis not in shared}
    lead = [axis for axis in dict.fromkeys(leading_axes) if axis in finest]
    rest = [axis for axis in range(format.rank) if axis in finest and axis not in lead]
    if not rest:
        return None
    levels = [*format.batch, *(Level((Digit(axis, finest[axis]),), Full(), Implicit()) for axis in lead)]
    pos, digits = _width(format), [Digit(axis, finest[axis]) for axis in rest]
    levels.append(Level((digits[0],), Var(pos=pos), Stored(unique=False, crd=_coordinate_width(format, digits[0]))))
    levels.extend(Level((digit,), One(), Stored(crd=_coordinate_width(format, digit))) for digit in digits[1:])
    levels.append(Level((), Link(pos), Link(pos)))
    return Format.of(levels + list(format.levels[len(format.prefix) :]), axes=format.axes)


def _coordinate_width(format: Format, digit: Digit) -> str | None:
    """That in which the format itself stores the coordinates, or would, so that the two can share an array."""
    found = (
        level.coordinate.crd
        for level in format.prefix
        if level.digits == (digit,) and isinstance(level.coordinate, (Stored, Implicit))
    )
    return "i64" if _width(format) == "i64" else next(found, None)


def _width(format: Format) -> str:
    """i64 when any array of the format is."""
    wide = any(
        getattr(kind, field.name) == "i64"
        for level in format.levels
        for kind in (level.extent, level.coordinate)
        for field in dataclasses.fields(kind)
    )
    return "i64" if wide else "i32"

# SPDX-License-Identifier: Apache-2.0
"""Nesting: one format for the grid of blocks, another inside the blocks."""

from __future__ import annotations

from ..errors import FormatError
from .digit import Digit
from .format import Format
from .kinds.full import Full
from .kinds.implicit import Implicit
from .level import Level
from .predefined import _Blocked, as_format


def compose(shape_rank: int, blocks, formats) -> Format:
    """The format that `.block(...)` and `.set_format(F, axis=[...])` say together.

    `blocks` is a list of tuples of block sizes, outermost first, each with `shape_rank` sizes. `formats` is a
    list of (format, axes); axes 0 .. rank-1 are the grid of blocks, the next `rank` inside a block, and so on;
    `None` means the grid. Levels follow the order of `formats`; axes without a format follow as dense, ascending.

    >>> from lacis.formats import Csr, Coo, Ell, Bsr
    >>> fmt = compose(2, [(16, 16)], [(Ell, [0, 1]), (Coo, [2, 3])])
    >>> print(", ".join(level.text(fmt.axes) for level in fmt.levels))
    i floordiv 16 : dense, j floordiv 16 : packed<?>, i mod 16 : compressed<unique=false>, j mod 16 : singleton
    >>> compose(2, [(16, 16)], [(Csr, None)]) == Bsr(16, 16)
    True

    Raises `FormatError` for an axis that does not exist or is used twice, and sizes that do not nest.
    """
    axes = _axes(shape_rank, blocks)
    levels: list[Level] = []
    used: set[int] = set()
    for fmt, places in formats:
        fmt, places = _take(as_format(fmt), places, shape_rank, blocks)
        for place in places:
            if not 0 <= place < len(axes):
                more = "" if blocks else f"; .block(b0, b1) before it makes {2 * shape_rank} of them"
                what = "after .block() there are" if blocks else "the tensor has"
                raise FormatError(f"no axis {place}: {what} {len(axes)} axes{more}")
            if place in used:
                raise FormatError(f"axis {place} has a format already")
            used.add(place)
        targets = [axes[place] for place in places]
        levels += [_onto(level, fmt, targets) for level in fmt.levels]
    rest = [axis for place, axis in enumerate(axes) if place not in used]
    levels += [Level((axis,), Full(), Implicit()) for axis in rest]
    return Format.of(levels, multiset=any(_multiset(f) for f, _ in formats))


def _multiset(fmt) -> bool:
    fmt = as_format(fmt)
    return not (isinstance(fmt, _Blocked) and fmt.sizes is None) and fmt.multiset


def _axes(rank: int, blocks) -> list[Digit]:
    """All axes after the blocks: the grid, then each depth."""
    inner = [Digit(axis) for axis in range(rank)]
    axes: list[Digit] = []
    for sizes in blocks:
        if len(sizes) != rank:
            raise FormatError(f".block() needs {rank} sizes, one for each axis, not {len(sizes)}")
        cut = [digit.block(size) for digit, size in zip(inner, sizes)]
        axes += [outer for outer, _ in cut]
        inner = [below for _, below in cut]
    return axes + inner


def _take(fmt, places, rank: int, blocks):
    """The format with block sizes bound, and the axes that it takes."""
    if not isinstance(fmt, Format):
        raise FormatError("a sum cannot be nested; decompose() the whole tensor, and give its parts nested formats")
    if isinstance(fmt, _Blocked) and blocks and places is None:
        fmt = fmt.bind(*blocks[0])
        return _grid(fmt), list(range(rank))
    if fmt.bindings:
        raise FormatError(f"'{fmt}' binds coordinates of whole axes, so it is neither nested nor blocked")
    places = list(range(rank)) if places is None else list(places)
    return fmt.for_rank(len(places)), places


def _grid(fmt: Format) -> Format:
    """The levels of a block format over the grid alone."""
    levels = [Level(tuple(Digit(d.axis) for d in level.digits), level.extent, level.coordinate) for level in fmt.prefix]
    return Format.of(levels)


def _onto(level: Level, fmt: Format, targets) -> Level:
    digits = tuple(digit.within(targets[digit.axis]) for digit in level.digits)
    return Level(digits, level.extent, level.coordinate)

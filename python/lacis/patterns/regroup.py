# SPDX-License-Identifier: Apache-2.0
"""Execution layouts of tensors with stored blocks: what tile kernels walk, made on the device from the pattern.

The layout's format has the levels panel, step, bitmap of tiles, and the tile itself:
`(i floordiv 384 : dense, j floordiv 64 : compressed, (i floordiv 64 mod 6, j floordiv 16 mod 4) : bitmap,
i mod 64 : dense, j mod 16 : dense)`. A tile is kept where any stored block touches it. The panels are of rows, or,
for the product with the transpose, of columns: `(j floordiv 128 : dense, i floordiv 64 : compressed, ...)`. Of several
matrices, as the heads of attention have them, dense levels come before the panels, each matrix begins with a panel, and
rows keep their order: `(h : dense, i floordiv 64 : dense, j floordiv 16 : compressed, ...)`.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import torch

from ..errors import FormatError
from ..formats import Format
from ..formats.batch import below
from .batch import renumbered
from .constants import counted
from .copies import copy_units, exchange_chunks, piece_numbers, unit_places
from .group_rows import group_rows
from .structure import Structure

__all__ = ["Regrouped", "exchange_chunks", "regroup"]


LOADED = 64  # rows that a kernel loads at once, at the most: these are neighbours


@dataclasses.dataclass(frozen=True)
class Regrouped:
    """The arrays of an execution layout by name, and which tile of the grid each position holds.

    Arrays are as long as the stored blocks can make them, for only the device knows how many tiles there are; `pos1`
    and `pos2` say what counts. Positions behind the last tile stand outside of the grid.

    `arrays` has `pos1`, `crd1`, `pos2`, `bits2`, with a `link` level `link3`, and `origin`: the group of tile rows (of
    tile columns, in panels of columns) that stands at each place, one beyond the last where there is none. Of several
    matrices numbers of levels are higher by that of the axes before, and rows are counted through all of them.
    """

    structure: Structure
    format: Format
    arrays: dict[str, torch.Tensor]
    tile_rows: torch.Tensor
    tile_columns: torch.Tensor
    slots: torch.Tensor  # of the structure's blocks; see `grid_of_slots`
    _places: dict = dataclasses.field(default_factory=dict, compare=False, repr=False)

    @functools.cached_property
    def pieces(self) -> torch.Tensor:
        """Which piece of the stored blocks each piece of a tile is; see `lacis.patterns.copies`."""
        if self.slots.ndim > 2:
            raise FormatError(f"execution layouts of several matrices are of patterns, without values: '{self.format}'")
        return piece_numbers(
            self.slots, self.structure.format.tile, self.format.tile, self.tile_rows, self.tile_columns
        )

    def values(self, values: torch.Tensor, line: int = 0) -> torch.Tensor:
        """Stored blocks `[slots, *block]` as tiles `[positions, *tile]`, zero where nothing is stored.

        `line` is the number of bytes in a row of a tile whose 16-byte chunks are exchanged for the tensor cores:
        32, 64, 128, or 0 for none.
        """
        block, tile = self.structure.format.tile, self.format.tile
        if line and line != tile[1] * values.element_size():
            raise FormatError(f"a row of {tile[1]} elements does not have {line} bytes")
        places = self.places(line, values.element_size())
        return copy_units(values, places, len(self.tile_rows), block, tile)

    def places(self, line: int, itemsize: int) -> torch.Tensor:
        """Where the values go in such a copy; see `lacis.patterns.copies.unit_places`. Made once and kept."""
        if (line, itemsize) not in self._places:
            slots, block = self.structure.slots, self.structure.format.tile
            self._places[line, itemsize] = unit_places(self.pieces, slots, block, self.format.tile, line, itemsize)
        return self._places[line, itemsize]


def regroup(
    structure: Structure,
    format: Format | str,
    *,
    capacity: int | None = None,
    reorder: bool = False,
    slots: torch.Tensor | None = None,
) -> Regrouped:
    """The execution layout `format` of `structure`, whose stored blocks are matrices, or which is a dense matrix.

    Below dense levels of `format` for its first axes it is several. A step with more than `capacity` tiles occurs
    again. `reorder` spreads the rows of tiles evenly over the panels, and brings those with many common steps
    together where they are as high as what kernels load at once; else they keep their order. `slots` is the
    `grid_of_slots`, where that is known.
    Raises `FormatError` for a format that is no execution layout.

        >>> from lacis.patterns import Pattern
        >>> blocks = "(i, j) -> (i floordiv 2 : dense, j floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)"
        >>> structure = Pattern.from_mask(torch.ones(4, 2, dtype=torch.bool), blocks).parts[""]
        >>> pairs = ("(i, j) -> (i floordiv 4 : dense, j floordiv 2 : compressed, i floordiv 2 mod 2 : bitmap, link, "
        ...          "i mod 2 : dense, j mod 2 : dense)")
        >>> arrays = regroup(structure, pairs).arrays
        >>> arrays["pos1"].tolist(), arrays["bits2"].tolist(), arrays["link3"].tolist()
        ([0, 1], [3], [0, 1])
    """
    format = Format.parse(format) if isinstance(format, str) else format
    lead = _leading_axes(structure, format)
    turned = format.levels[-2].digits[0].axis == lead + 1  # the rows of blocks are the last axis
    if turned:
        order = [*range(lead), lead + 1, lead]
        format, shape = format.permuted(order), tuple(structure.shape[axis] for axis in order)
        structure = dataclasses.replace(structure, format=structure.format.permuted(order), shape=shape)
    slots = grid_of_slots(structure) if slots is None else slots.mT if turned else slots
    own = below(format, lead)
    (outer,), (inner,) = own.levels[0].digits, own.levels[1].digits
    height, width = outer.div // own.tile[outer.axis], inner.div // own.tile[inner.axis]
    present = _present_tiles(structure, slots, *own.tile)
    present = present.mT if outer.axis else present
    if lead:
        present = _in_whole_panels(present, -(-structure.shape[lead + outer.axis] // outer.div) * height)
    count, columns = present.shape
    panels, steps = -(-count // height), -(-columns // width)
    grouped = reorder and not lead and own.tile[outer.axis] >= LOADED
    order = group_rows(_steps(present, width), panels) if grouped else None
    origin = _origin(order, count, panels, height, even=reorder, device=present.device)
    grid = torch.nn.functional.pad(present, (0, steps * width - columns, 0, 1))[origin]  # one more row, of none
    bits = grid.reshape(panels, height, steps, width).permute(0, 2, 1, 3).reshape(panels, steps, height * width)
    most = _most_tiles(structure, own.tile, present.numel())
    arrays, at, at_panel, at_step = _stages(bits, capacity, most)
    arrays = renumbered(arrays, lead) | {"origin": origin.int()}
    row = torch.add(at // width % height, at_panel, alpha=height)
    tile_rows = torch.nn.functional.pad(origin, (0, height), value=count)[row]
    tile_columns = torch.add(at % width, at_step, alpha=width)
    if outer.axis:
        tile_rows, tile_columns = tile_columns, tile_rows
    layout = Regrouped(structure, format, arrays, tile_rows, tile_columns, slots)
    if any(level.extent.stands_alone for level in format.levels) and not is_matrix(structure):
        arrays["link3"] = _links(layout)
    return layout


def _leading_axes(structure: Structure, format: Format) -> int:
    """How many axes come before those of the matrices. Raises `FormatError` for what is no execution layout of them."""
    lead = len(structure.shape) - 2
    tiled = len(format.tile) == 2 and (len(structure.format.tile) == 2 or (lead == 0 and is_matrix(structure)))
    linked = any(level.extent.stands_alone for level in format.levels)
    whole = lead >= 0 and all(
        level.extent.covers and [(digit.axis, digit.div) for digit in level.digits] == [(number, 1)]
        for number, level in enumerate(format.levels[:lead])
    )
    if tiled and whole and not (lead and linked):
        return lead
    raise FormatError(
        f"an execution layout is of matrices with stored blocks, not '{structure.format}', and below a dense level for "
        f"each axis before theirs, without links: '{format}'"
    )


def _in_whole_panels(present: torch.Tensor, rows: int) -> torch.Tensor:
    """Bool [..., tile rows, tile columns] of several matrices as that of one, where each has so many rows."""
    return torch.nn.functional.pad(present, (0, 0, 0, rows - present.shape[-2])).flatten(0, -2)


def _origin(order, count: int, panels: int, height: int, even: bool, device) -> torch.Tensor:
    """Which row stands at each place, `count` where none does; int64 [panels * height].

    Rows in `order` fill one panel after another, or all of them as evenly as it goes.
    """
    number = place = counted(panels * height, device)
    if not even and count < len(place):
        number = place.clamp(max=count)
    elif count < len(place):
        first = _first_rows(count, panels, device)
        row, panel = place % height, place // height
        number = torch.where(row < first.diff()[panel], first[panel] + row, count)
    if order is None:
        return number
    return torch.nn.functional.pad(order, (0, 1), value=count)[number]


def _first_rows(count: int, panels: int, device) -> torch.Tensor:
    """The first of `count` rows in each panel, and behind the last, where row n is in panel n * panels // count."""
    return torch.add(counted(panels + 1, device) * count, panels - 1) // panels


def _links(layout: Regrouped) -> torch.Tensor:
    """The slot of each tile, times the tiles of a stored block, and its number in the block, row by row; int32."""
    (rows, columns), (height, width) = layout.format.tile, layout.structure.format.tile
    if height % rows or width % columns:
        raise FormatError(f"tiles that link to stored blocks are parts of them; {rows}x{columns}, {height}x{width}")
    down, across, slots = height // rows, width // columns, layout.slots
    row, column = (
        each // n if n > 1 else each for each, n in ((layout.tile_rows, down), (layout.tile_columns, across))
    )
    slot = slots[row.clamp(max=slots.shape[0] - 1), column.clamp(max=slots.shape[1] - 1)]
    if down > 1:
        slot = torch.add(layout.tile_rows % down, slot, alpha=down)
    if across > 1:
        slot = torch.add(layout.tile_columns % across, slot, alpha=across)
    return slot.int()


def grid_of_slots(structure: Structure) -> torch.Tensor | None:
    """The slot of each block of the matrices, -1 where none is stored; int64 [..., block rows, block columns].

    Of a matrix without blocks, all of whose places are stored, it is empty: nobody asks. Others have none.
    """
    if is_matrix(structure):
        return torch.empty(0, 0, dtype=torch.int64, device=structure.device)
    if len(structure.format.tile) != 2 or len(structure.shape) < 2:
        return None
    (*lead, rows, columns), (height, width) = structure.shape, structure.sides
    sizes = *lead, -(-rows // height), -(-columns // width)
    (*axes, row, column), valid = structure.slot_axes()
    place = torch.zeros_like(row)
    for axis, size in zip((*axes, row // height, column // width), sizes):
        place = torch.add(axis, place, alpha=size)
    place = place.masked_fill(~valid, math.prod(sizes))  # of none, behind the last
    grid = place.new_full((math.prod(sizes) + 1,), -1)
    grid.index_put_((place,), counted(len(row), row.device))
    return grid[:-1].reshape(sizes)


def is_matrix(structure: Structure) -> bool:
    """Is every place of the matrix stored, row by row? Its tiles lie there, and need no links."""
    return not structure.buffers and not structure.format.tile and structure.slots == math.prod(structure.shape)


def _present_tiles(structure: Structure, slots: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Which tiles of the matrices a stored block touches; bool [..., tile rows, tile columns]."""
    if is_matrix(structure):
        grid = -(-structure.shape[0] // rows), -(-structure.shape[1] // columns)
        return torch.ones(grid, dtype=torch.bool, device=structure.device)
    height, width = structure.sides
    if rows % height and height % rows or columns % width and width % columns:
        raise FormatError(f"tiles of {rows}x{columns} and stored blocks of {height}x{width} do not nest")
    grid = slots >= 0
    for axis, tile, block in ((-2, rows, height), (-1, columns, width)):
        if block > tile:
            grid = grid.repeat_interleave(block // tile, axis)
        elif tile > block:
            pad = -grid.shape[axis] % (tile // block)
            grid = torch.nn.functional.pad(grid, (0, pad) if axis == -1 else (0, 0, 0, pad))
            grid = grid.unflatten(axis, (-1, tile // block)).any(axis)
    return grid


def _steps(present: torch.Tensor, width: int) -> torch.Tensor:
    """In which steps of `width` columns a row has any; bool [rows, steps]."""
    return torch.nn.functional.pad(present, (0, -present.shape[1] % width)).unflatten(1, (-1, width)).any(2)


def _most_tiles(structure: Structure, tile, grid: int) -> int:
    """The most tiles of a grid of so many that the stored blocks can touch."""
    if is_matrix(structure):
        return grid
    each = (max(block // size, 1) for block, size in zip(structure.sides, tile))
    return min(structure.slots * math.prod(each), grid)


def _stages(bits: torch.Tensor, capacity: int | None, most: int):
    """Arrays of the levels below the panel from bool [panels, steps, bits], and where the `most` tiles stand.

    The arrays, and the number among all bits, the panel and the step of each tile in order, are as long as `most` tiles
    can make them: the host does not know how many there are. The panel of a tile that is not there is one beyond the
    last.
    """
    panels, steps, width = bits.shape
    capacity, device = min(capacity or width, width), bits.device
    before = bits.reshape(-1).cumsum(0)
    at = torch.searchsorted(before, counted(most + 2, device)[1:])  # one more tile, that is not there
    group, bit = at // width, at % width
    first = torch.nn.functional.pad(before[width - 1 :: width], (1, 0))  # tiles before each step; the last is of none
    number = counted(most + 1, device) - first[group]
    there, begins = group < panels * steps, number % capacity == 0 if capacity < width else number == 0
    words = (begins & there)[:most].cumsum(0)  # up to and with each tile
    size = min(most, panels * steps * -(-width // capacity))
    tile = torch.searchsorted(words, counted(size + 2, device)[1:])  # the first of each word
    tile = torch.minimum(tile, first[-1:])
    held = words.new_zeros(size + 1)
    held.scatter_add_(0, words, there[:most] << bit[:most])  # what is not there adds nothing to the last
    panel = first[::steps] if steps else first.new_zeros(panels + 1)
    arrays = {
        "pos1": torch.nn.functional.pad(words, (1, 0))[panel].int(),
        "crd1": (group[tile[:-1]] % max(steps, 1)).int(),
        "pos2": tile.int(),
        "bits2": held[1:].int(),
    }
    return arrays, at[:most], group[:most] // max(steps, 1), group[:most] % max(steps, 1)

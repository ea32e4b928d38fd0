# SPDX-License-Identifier: Apache-2.0
"""Execution layouts of tensors with stored blocks: what tile kernels walk, made on the device from the pattern.

The layout's format has the levels panel, step, bitmap of tiles, and the tile itself:
`(i floordiv 384 : dense, j floordiv 64 : compressed, (i floordiv 64 mod 6, j floordiv 16 mod 4) : bitmap,
i mod 64 : dense, j mod 16 : dense)`. A tile is kept where any stored block touches it. The panels are of rows, or,
for the product with the transpose, of columns: `(j floordiv 128 : dense, i floordiv 64 : compressed, ...)`.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import torch

from ..errors import FormatError
from ..formats import Format
from .copies import copy_units, exchange_chunks, piece_numbers, unit_places
from .group_rows import group_rows
from .structure import Structure

__all__ = ["Regrouped", "exchange_chunks", "regroup"]


_LOADED = 64  # rows that a kernel loads at once, at the most: these are neighbours


@dataclasses.dataclass(frozen=True)
class Regrouped:
    """The arrays of an execution layout by name, and which tile of the grid each position holds.

    Arrays are as long as the stored blocks can make them, for only the device knows how many tiles there are; `pos1`
    and `pos2` say what counts. Positions behind the last tile stand outside of the grid.

    `arrays` has `pos1`, `crd1`, `pos2`, `bits2`, with a `link` level `link3`, and `origin`: the group of tile rows (of
    tile columns, in panels of columns) that stands at each place, one beyond the last where there is none.
    """

    structure: Structure
    format: Format
    arrays: dict[str, torch.Tensor]
    tile_rows: torch.Tensor
    tile_columns: torch.Tensor
    _places: dict = dataclasses.field(default_factory=dict, compare=False, repr=False)

    @functools.cached_property
    def pieces(self) -> torch.Tensor:
        """Which piece of the stored blocks each piece of a tile is; see `lacis.patterns.copies`."""
        slots = _slot_grid(self.structure)
        return piece_numbers(slots, self.structure.format.tile, self.format.tile, self.tile_rows, self.tile_columns)

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
    structure: Structure, format: Format | str, *, capacity: int | None = None, reorder: bool = False
) -> Regrouped:
    """The execution layout `format` of `structure`, whose stored blocks are matrices, or which is a dense matrix.

    A step with more than `capacity` tiles occurs again. `reorder` spreads the rows of tiles evenly over the panels, and
    brings those with many common steps together where they are as high as what kernels load at once; else they keep
    their order.
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
    tiled = len(structure.format.tile) == 2 or _is_matrix(structure)
    if not tiled or len(format.tile) != 2 or len(structure.shape) != 2:
        raise FormatError(f"an execution layout is of matrices with stored blocks, not '{structure.format}'")
    if format.levels[-2].digits[0].axis == 1:  # the rows of blocks are the second axis
        format = format.permuted([1, 0])
        structure = dataclasses.replace(
            structure, format=structure.format.permuted([1, 0]), shape=structure.shape[::-1]
        )
    (outer,), (inner,) = format.levels[0].digits, format.levels[1].digits
    height, width = outer.div // format.tile[outer.axis], inner.div // format.tile[inner.axis]
    present = _present_tiles(structure, *format.tile)
    present = present.T if outer.axis else present
    count = present.shape[0]
    panels, steps = -(-count // height), -(-present.shape[1] // width)
    order = place = torch.arange(count, device=present.device)
    if reorder:
        order = group_rows(_steps(present, width), panels) if format.tile[outer.axis] >= _LOADED else order
        place = _even_places(count, panels, height, present.device)
    grid = torch.zeros(panels * height, steps * width, dtype=torch.bool, device=present.device)
    grid[place, : present.shape[1]] = present[order]
    bits = grid.reshape(panels, height, steps, width).permute(0, 2, 1, 3).reshape(panels, steps, height * width)
    arrays, (at_panel, at_step, bit) = _stages(bits, capacity, _most_tiles(structure, format.tile, present.numel()))
    origin = torch.full((panels * height,), count, dtype=torch.int32, device=present.device)
    origin[place] = order.int()
    arrays["origin"] = origin
    tile_rows = torch.nn.functional.pad(origin, (0, height), value=count)[at_panel * height + bit // width].long()
    tile_columns = at_step * width + bit % width
    if outer.axis:
        tile_rows, tile_columns = tile_columns, tile_rows
    if any(level.extent.stands_alone for level in format.levels) and not _is_matrix(structure):
        arrays["link3"] = _links(structure, format, tile_rows, tile_columns)
    return Regrouped(structure, format, arrays, tile_rows, tile_columns)


def _links(structure: Structure, format: Format, tile_rows: torch.Tensor, tile_columns: torch.Tensor) -> torch.Tensor:
    """The slot of each tile, times the tiles of a stored block, and its number in the block, row by row; int32."""
    (rows, columns), (height, width) = format.tile, structure.format.tile
    if height % rows or width % columns:
        raise FormatError(f"tiles that link to stored blocks are parts of them; {rows}x{columns}, {height}x{width}")
    down, across = height // rows, width // columns
    slots = _slot_grid(structure)
    row, column = (
        (tile_rows // down).clamp(max=slots.shape[0] - 1),
        (tile_columns // across).clamp(max=slots.shape[1] - 1),
    )
    slot = slots[row, column]
    return ((slot * down + tile_rows % down) * across + tile_columns % across).int()


def _slot_grid(structure: Structure) -> torch.Tensor:
    """The slot of each block of the matrix, -1 where none is stored; int64 [block rows, block columns]."""
    height, width = structure.format.tile
    down, across = -(-structure.shape[0] // height), -(-structure.shape[1] // width)
    (row, column), valid = structure.slot_axes()
    place = torch.where(valid, row // height * across + column // width, down * across)  # of none, behind the last
    grid = torch.full((down * across + 1,), -1, dtype=torch.int64, device=row.device)
    grid.scatter_(0, place, torch.arange(len(row), device=row.device))
    return grid[:-1].reshape(down, across)


def _is_matrix(structure: Structure) -> bool:
    """Is every place of the matrix stored, row by row? Its tiles lie there, and need no links."""
    return not structure.buffers and not structure.format.tile and structure.slots == math.prod(structure.shape)


def _present_tiles(structure: Structure, rows: int, columns: int) -> torch.Tensor:
    """Which tiles of the matrix a stored block touches; bool [tile rows, tile columns]."""
    if _is_matrix(structure):
        grid = -(-structure.shape[0] // rows), -(-structure.shape[1] // columns)
        return torch.ones(grid, dtype=torch.bool, device=structure.device)
    height, width = structure.format.tile
    if rows % height and height % rows or columns % width and width % columns:
        raise FormatError(f"tiles of {rows}x{columns} and stored blocks of {height}x{width} do not nest")
    grid = _slot_grid(structure) >= 0
    for axis, (tile, block) in enumerate(((rows, height), (columns, width))):
        if block > tile:
            grid = grid.repeat_interleave(block // tile, axis)
        elif tile > block:
            pad = -grid.shape[axis] % (tile // block)
            grid = torch.nn.functional.pad(grid, (0, pad) if axis else (0, 0, 0, pad))
            grid = grid.unflatten(axis, (-1, tile // block)).any(axis + 1)
    return grid


def _steps(present: torch.Tensor, width: int) -> torch.Tensor:
    """In which steps of `width` columns a row has any; bool [rows, steps]."""
    return torch.nn.functional.pad(present, (0, -present.shape[1] % width)).unflatten(1, (-1, width)).any(2)


def _even_places(count: int, panels: int, height: int, device) -> torch.Tensor:
    """Places of `count` rows in panels of `height`, as evenly as they go; int64 [count]."""
    row = torch.arange(count, device=device)
    panel = row * panels // count
    first = (panel * count + panels - 1) // panels  # the first row of the panel
    return panel * height + row - first


def _most_tiles(structure: Structure, tile, grid: int) -> int:
    """The most tiles of a grid of so many that the stored blocks can touch."""
    if _is_matrix(structure):
        return grid
    each = (max(block // size, 1) for block, size in zip(structure.format.tile, tile))
    return min(structure.slots * math.prod(each), grid)


def _stages(bits: torch.Tensor, capacity: int | None, most: int):
    """Arrays of the levels below the panel from bool [panels, steps, bits], and where the `most` tiles stand.

    The arrays, and the panel, step and bit of each tile in order, are as long as `most` tiles can make them: the
    host does not know how many there are. The panel of a tile that is not there is one beyond the last.
    """
    panels, steps, width = bits.shape
    capacity, device = min(capacity or width, width), bits.device
    at = torch.searchsorted(bits.reshape(-1).cumsum(0), torch.arange(1, most + 1, device=device))
    group, bit = at // width, at % width
    tiles = torch.nn.functional.pad(bits.sum(2).reshape(-1), (0, 1))  # of each step, and of none behind the last
    first = tiles.cumsum(0) - tiles
    parts = (tiles + capacity - 1) // capacity
    ends = parts.cumsum(0)
    size = min(most, panels * steps * -(-width // capacity))
    place = torch.arange(size + 1, device=device)
    owner = torch.searchsorted(ends, place, right=True).clamp(max=panels * steps)
    begins = first[owner] + torch.where(owner < panels * steps, place - (ends - parts)[owner], 0) * capacity
    number = torch.arange(most, device=device)
    stage = torch.where(group < panels * steps, (ends - parts)[group] + (number - first[group]) // capacity, size)
    words = torch.zeros(size + 1, dtype=torch.int64, device=device)
    words.scatter_add_(0, stage, torch.ones_like(bit) << bit)
    arrays = {
        "pos1": _positions(parts[:-1].reshape(panels, steps).sum(1)),
        "crd1": torch.where(owner < panels * steps, owner % max(steps, 1), 0)[:-1].int(),
        "pos2": begins.int(),
        "bits2": words[:-1].int(),
    }
    return arrays, (group // max(steps, 1), group % max(steps, 1), bit)


def _positions(counts: torch.Tensor) -> torch.Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()

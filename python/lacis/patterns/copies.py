# SPDX-License-Identifier: Apache-2.0
"""Copies of values in an execution layout: pieces of stored blocks, put together to tiles.

A piece is what a tile and a stored block have in common: as many rows and columns as the smaller of the two. Pieces
are numbered block by block, row by row.
"""

from __future__ import annotations

import math

import torch

from ..errors import FormatError
from .constants import counted
from .transforms import seen_as


def _piece(block: tuple[int, int], tile: tuple[int, int]) -> tuple[int, int]:
    return min(block[0], tile[0]), min(block[1], tile[1])


def piece_numbers(slots: torch.Tensor, block, tile, tile_rows: torch.Tensor, tile_columns: torch.Tensor):
    """The number of each piece of each tile, negative where nothing is stored; int64 [positions, rows, columns of
    pieces].

    `slots` int64 [block rows, block columns] has the slot of each block, -1 where there is none; tile n stands at row
    `tile_rows[n]` and column `tile_columns[n]` of the grid of tiles.
    """
    (height, width), (rows, columns) = _piece(block, tile), tile
    device = slots.device
    row = (tile_rows * rows)[:, None, None] + counted(rows, device)[::height, None]
    column = (tile_columns * columns)[:, None, None] + counted(columns, device)[::width]
    beyond = torch.nn.functional.pad(slots, (0, 1, 0, 1), value=-1)
    number = beyond[(row // block[0]).clamp(max=slots.shape[0]), (column // block[1]).clamp(max=slots.shape[1])]
    down, across = block[0] // height, block[1] // width
    if down > 1:
        number = torch.add(row % block[0] // height, number, alpha=down)
    if across > 1:
        number = torch.add(column % block[1] // width, number, alpha=across)
    return number


def unit_size(block, tile, itemsize: int) -> int:
    """How many neighbours of a row a copy moves at once: what fits into 16 bytes and divides a piece."""
    return math.gcd(_piece(block, tile)[1], 16 // itemsize)


def unit_places(pieces: torch.Tensor, slots: int, block, tile, line: int, itemsize: int) -> torch.Tensor:
    """Where each unit of the values goes among those of the tiles, one beyond the last for those that go nowhere.

    int64 [slots * units of a block]; `line` as in `copy_tiles`.
    """
    unit = unit_size(block, tile, itemsize)
    narrow = (block[0], block[1] // unit)
    units = counted(slots * narrow[0] * narrow[1] + 1, pieces.device)[1:].reshape(-1, *narrow)  # 0 is nothing stored
    found = _gather(units, pieces, narrow, (tile[0], tile[1] // unit))
    if line:
        found = _exchanged(found, 16 // (unit * itemsize))
    found = found.reshape(-1)
    places = found.new_full((units.numel() + 1,), found.numel())
    places.index_put_((found,), counted(found.numel(), pieces.device))  # of none, before the first
    return places[1:].clone()  # a kernel would copy at each call what does not begin at 16 bytes


def copy_units(values: torch.Tensor, places: torch.Tensor, positions: int, block, tile) -> torch.Tensor:
    """Stored blocks `[slots, *block]` as tiles `[positions, *tile]`, by the places of `unit_places`.

    Behind the tiles their storage has room for one more unit, where those go that go nowhere.
    """
    units = _units(values, places, block, tile)
    count = positions * tile[0] * tile[1] * values.element_size() // _unit_bytes(units)
    room = units.new_zeros(count + 1, units.shape[1])
    room.index_put_((places,), units)
    return seen_as(room[:count], values.dtype).reshape(positions, *tile)


def copy_units_again(tiles: torch.Tensor, values: torch.Tensor, places: torch.Tensor, block, tile) -> None:
    """`copy_units` of other values by the same places, into the tiles that it made; these `have_room`.

    >>> blocks, places = torch.tensor([[[1, 2], [3, 4]]]), torch.tensor([0, 1])
    >>> tiles = copy_units(blocks, places, 1, (2, 2), (4, 2))
    >>> copy_units_again(tiles, 2 * blocks, places, (2, 2), (4, 2))
    >>> tiles.tolist()
    [[[2, 4], [6, 8], [0, 0], [0, 0]]]
    """
    units = _units(values, places, block, tile)
    _room(tiles, units).index_copy_(0, places, units)


def _room(tiles: torch.Tensor, units: torch.Tensor) -> torch.Tensor:
    """The storage of tiles that `copy_units` made, as units."""
    count = tiles.numel() * tiles.element_size() // _unit_bytes(units)
    return tiles.view(units.dtype).as_strided((count + 1, units.shape[1]), (units.shape[1], 1), 0)


class Refill:
    """`copy_units_again` into the same tiles again and again, whose view is made once.

    >>> blocks, places = torch.tensor([[[1, 2], [3, 4]]]), torch.tensor([0, 1])
    >>> tiles = copy_units(blocks, places, 1, (2, 2), (4, 2))
    >>> refill = Refill(tiles, blocks, places, (2, 2), (4, 2))
    >>> refill(3 * blocks)
    >>> tiles.tolist()
    [[[3, 6], [9, 12], [0, 0], [0, 0]]]
    """

    def __init__(self, tiles: torch.Tensor, values: torch.Tensor, places: torch.Tensor, block, tile):
        self._sizes, self._places = (block, tile), places
        self._room = _room(tiles, _units(values, places, block, tile))
        self._address = 0
        self.bound = None
        """A kernel on the values at that address, if there is one; whoever calls it says `noted` then."""

    def __call__(self, values: torch.Tensor) -> None:
        if scatter is None:
            self._room.index_copy_(0, self._places, _units(values, self._places, *self._sizes))
            return
        if not self.holds(values):
            units = _units(values, self._places, *self._sizes)
            self.bound, self._address = scatter(units, self._places, self._room[:-1]), values.data_ptr()
        self.bound()
        self.noted()

    def holds(self, values: torch.Tensor) -> bool:
        """Do the values lie where `bound` reads them?"""
        return self.bound is not None and values.data_ptr() == self._address

    def noted(self) -> None:
        """The kernel has filled the tiles, which torch counts as a change."""
        torch.autograd.graph.increment_version(self._room)


scatter = None
"""What a `Refill` calls with its units, their places and where they go, for a kernel bound to them, if there is one."""


def have_room(tiles: torch.Tensor, block, tile) -> bool:
    """Are these tiles as `copy_units` makes them, and not moved or cast since?"""
    unit = unit_size(block, tile, tiles.element_size())
    return tiles.untyped_storage().nbytes() == (tiles.numel() + unit) * tiles.element_size()


def _units(values: torch.Tensor, places: torch.Tensor, block, tile) -> torch.Tensor:
    """Stored blocks as integers `[units, words of a unit]`."""
    itemsize = values.element_size()
    size = unit_size(block, tile, itemsize) * itemsize
    word = {1: torch.int8, 2: torch.int16, 4: torch.int32}.get(size, torch.int64)
    values = values.contiguous()
    if torch.compiler.is_compiling() or values.storage_offset() * itemsize % size:  # a graph knows no offsets
        values = values.clone()
    return seen_as(values, word).reshape(len(places), max(size // 8, 1))


def _unit_bytes(units: torch.Tensor) -> int:
    return units.shape[1] * units.element_size()


def copy_tiles(values: torch.Tensor, pieces: torch.Tensor, block, tile, line: int = 0) -> torch.Tensor:
    """Stored blocks `[slots, *block]` as tiles `[positions, *tile]`, zero where nothing is stored.

    `line` is the number of bytes in a row of a tile whose 16-byte chunks are exchanged, 0 where they are not.

    >>> blocks = torch.tensor([[[1, 2], [3, 4]]])
    >>> copy_tiles(blocks, torch.tensor([[[0], [-1]]]), (2, 2), (4, 2)).tolist()
    [[[1, 2], [3, 4], [0, 0], [0, 0]]]
    """
    if line and line != tile[1] * values.element_size():
        raise FormatError(f"a row of {tile[1]} elements does not have {line} bytes")
    places = unit_places(pieces, len(values), block, tile, line, values.element_size())
    return copy_units(values, places, len(pieces), block, tile)


def _gather(values: torch.Tensor, pieces: torch.Tensor, block, tile) -> torch.Tensor:
    """Stored blocks as tiles, piece by piece."""
    height, width = _piece(block, tile)
    parts = values.reshape(-1, block[0] // height, height, block[1] // width, width)
    parts = parts.transpose(2, 3).reshape(-1, height, width)
    if not len(parts):
        return torch.zeros(len(pieces), *tile, dtype=values.dtype, device=values.device)
    found = torch.where((pieces >= 0)[..., None, None], parts[pieces.clamp(min=0)], 0)
    return found.transpose(2, 3).reshape(-1, *tile)


def _exchanged(tiles: torch.Tensor, per_chunk: int) -> torch.Tensor:
    """Tiles with the chunks of `per_chunk` neighbours of each row exchanged by the row's number."""
    chunks = tiles.shape[-1] // per_chunk
    row = counted(tiles.shape[-2], tiles.device)
    order = counted(chunks, tiles.device) ^ (row // (8 // chunks) % chunks)[:, None]
    split = tiles.reshape(*tiles.shape[:-1], chunks, per_chunk)
    return torch.gather(split, -2, order[..., None].expand_as(split)).reshape(tiles.shape)


def exchange_chunks(tiles: torch.Tensor, line: int) -> torch.Tensor:
    """Tiles whose rows have `line` bytes, with the 16-byte chunks of each row exchanged by the row's number."""
    per_chunk = 16 // tiles.element_size()
    if tiles.shape[-1] != per_chunk * (line // 16):
        raise FormatError(f"a row of {tiles.shape[-1]} elements does not have {line} bytes")
    return _exchanged(tiles, per_chunk)

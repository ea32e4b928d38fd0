# SPDX-License-Identifier: Apache-2.0
"""Copies of values in an execution layout: pieces of stored blocks, put together to tiles.

A piece is what a tile and a stored block have in common: as many rows and columns as the smaller of the two. Pieces
are numbered block by block, row by row.
"""

from __future__ import annotations

import torch

from ..errors import FormatError


def _piece(block: tuple[int, int], tile: tuple[int, int]) -> tuple[int, int]:
    return min(block[0], tile[0]), min(block[1], tile[1])


def piece_numbers(slots: torch.Tensor, block, tile, tile_rows: torch.Tensor, tile_columns: torch.Tensor):
    """The number of each piece of each tile, -1 where nothing is stored; int64 [positions, rows, columns of pieces].

    `slots` int64 [block rows, block columns] has the slot of each block, -1 where there is none; tile n stands at row
    `tile_rows[n]` and column `tile_columns[n]` of the grid of tiles.
    """
    (height, width), (rows, columns) = _piece(block, tile), tile
    device = slots.device
    row = tile_rows[:, None, None] * rows + torch.arange(0, rows, height, device=device)[:, None]
    column = tile_columns[:, None, None] * columns + torch.arange(0, columns, width, device=device)
    inside = (row < slots.shape[0] * block[0]) & (column < slots.shape[1] * block[1])
    if not slots.numel():
        return torch.full(inside.shape, -1, device=device)
    slot = slots[(row // block[0]).clamp(max=slots.shape[0] - 1), (column // block[1]).clamp(max=slots.shape[1] - 1)]
    across = block[1] // width
    number = slot * (block[0] // height * across) + row % block[0] // height * across + column % block[1] // width
    return torch.where(inside & (slot >= 0), number, -1)


def copy_tiles(values: torch.Tensor, pieces: torch.Tensor, block, tile, line: int = 0) -> torch.Tensor:
    """Stored blocks `[slots, *block]` as tiles `[positions, *tile]`, zero where nothing is stored.

    >>> blocks = torch.tensor([[[1, 2], [3, 4]]])
    >>> copy_tiles(blocks, torch.tensor([[[0], [-1]]]), (2, 2), (4, 2)).tolist()
    [[[1, 2], [3, 4], [0, 0], [0, 0]]]
    """
    height, width = _piece(block, tile)
    parts = values.reshape(-1, block[0] // height, height, block[1] // width, width)
    parts = parts.transpose(2, 3).reshape(-1, height, width)
    found = parts[pieces.clamp(min=0)]
    zero = torch.zeros((), dtype=values.dtype, device=values.device)
    found = torch.where((pieces >= 0)[..., None, None], found, zero)
    tiles = found.transpose(2, 3).reshape(-1, *tile)
    return exchange_chunks(tiles, line) if line else tiles.contiguous()


def exchange_chunks(tiles: torch.Tensor, line: int) -> torch.Tensor:
    """Tiles whose rows have `line` bytes, with the 16-byte chunks of each row exchanged by the row's number."""
    per_chunk = 16 // tiles.element_size()
    chunks = line // 16
    if tiles.shape[-1] != per_chunk * chunks:
        raise FormatError(f"a row of {tiles.shape[-1]} elements does not have {line} bytes")
    row = torch.arange(tiles.shape[-2], device=tiles.device)
    order = torch.arange(chunks, device=tiles.device) ^ (row // (8 // chunks) % chunks)[:, None]
    split = tiles.reshape(*tiles.shape[:-1], chunks, per_chunk)
    return torch.gather(split, -2, order[..., None].expand_as(split)).reshape(tiles.shape)

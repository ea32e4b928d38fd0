# SPDX-License-Identifier: Apache-2.0
"""Matrices that are made from the places of their blocks, with no dense matrix."""

from __future__ import annotations

import torch

from ..errors import DataError, FormatError
from ..formats import Bsr
from ..packing import PackedTensor


def grid_of(shape, block) -> tuple[int, int]:
    """How many rows and columns of blocks cover a matrix."""
    return tuple(-(-size // b) for size, b in zip(shape, block))


def check_block(block) -> tuple[int, int]:
    """Two positive sizes. Raises `DataError`."""
    sizes = tuple(block)
    if len(sizes) != 2 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise DataError(f"a block shape is two positive whole numbers, not {block!r}")
    return sizes


def block_matrix(shape, block, places: torch.Tensor, values: torch.Tensor) -> PackedTensor:
    """A matrix with stored blocks at `places` of its grid (int64 [n], row-major numbers, ascending).

    `values` are [n, b0, b1]; what hangs over the edge of the matrix becomes 0, and is no entry.

    >>> block_matrix((2, 3), (2, 2), torch.tensor([1]), torch.ones(1, 2, 2)).to_dense().tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """
    rows, columns = grid_of(shape, block)
    row, column = places // max(columns, 1), places % max(columns, 1)
    device = values.device
    position = torch.zeros(rows + 1, dtype=torch.int64, device=device)
    position[1:] = torch.bincount(row, minlength=rows).cumsum(0)
    storage = {"pos1": position.int(), "crd1": column.int()}
    if any(size % b for size, b in zip(shape, block)):
        inside = [
            at[:, None] * b + torch.arange(b, device=device) < size for at, b, size in zip((row, column), block, shape)
        ]
        storage["valid"] = inside[0][:, :, None] & inside[1][:, None, :]
        values = values * storage["valid"]
    return PackedTensor.from_storage(Bsr(*block), shape, storage, values)


def places_of(packed: PackedTensor) -> torch.Tensor:
    """The places of the stored blocks, as `block_matrix` takes them. Raises `FormatError` for other formats."""
    tile = getattr(packed.format, "tile", ())
    if len(tile) != 2 or packed.format != Bsr(*tile):
        raise FormatError(f"blocks of a Bsr matrix can change places, not those of '{packed.format}'")
    position, column = (packed.storage[name].long() for name in ("pos1", "crd1"))
    row = torch.repeat_interleave(torch.arange(len(position) - 1, device=column.device), position.diff())
    return row * grid_of(packed.shape, tile)[1] + column

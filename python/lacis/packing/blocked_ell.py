# SPDX-License-Identifier: Apache-2.0
"""cuSPARSE's Blocked-ELL arrays: block columns [block rows, width], -1 where none, and values [rows, width * block]."""

from __future__ import annotations

import torch

from ..errors import DataError, FormatError
from ..formats import BlockedEll
from .packed import PackedTensor
from .validate import from_storage


def from_blocked_ell(col_ind, values, block: int, columns: int | None = None) -> PackedTensor:
    """A matrix from the arrays of cuSPARSE's Blocked-ELL format, in the format `BlockedEll(block, block)`.

    `col_ind` is int32 or int64 [rows / block, width], the columns of blocks in any order, -1 for none; `values` is
    [rows, width * block], row-major, on the same device: a row has its blocks side by side. All elements of a block
    that is named are entries; what lies under -1 is not looked at. `columns` is the number of columns, by default as
    many as the last block named needs. Differentiable in `values`.

    >>> import torch
    >>> packed = from_blocked_ell(torch.tensor([[1, 0], [1, -1]]), torch.arange(16.0).reshape(4, 4), block=2)
    >>> packed.to_dense().tolist()[0], packed.to_dense().tolist()[2]
    ([2.0, 3.0, 0.0, 1.0], [0.0, 0.0, 8.0, 9.0])

    Raises `DataError` for arrays that do not fit each other, and for columns that are out of range or there twice.
    """
    _check(col_ind, values, block)
    grid, named = col_ind.long(), col_ind >= 0
    last = (int(grid.max()) + 1 if grid.numel() else 0) * block
    columns = last if columns is None else columns
    order = torch.where(named, grid, torch.iinfo(torch.int64).max).argsort(dim=1, stable=True)
    blocks = values.reshape(len(grid), block, grid.shape[1], block).transpose(1, 2)
    blocks = torch.where(named[:, :, None, None], blocks, 0).take_along_dim(order[:, :, None, None], 1)
    crd = grid.take_along_dim(order, 1).clamp(min=-1)
    crd = crd if col_ind.dtype == torch.int64 else crd.int()
    shape = (values.shape[0], columns)
    return from_storage(BlockedEll(block, block), shape, {"crd1": crd}, blocks.reshape(-1, block, block))


def _check(col_ind, values, block) -> None:
    if isinstance(block, bool) or not isinstance(block, int) or block < 1:
        raise DataError(f"from_blocked_ell: a block size must be a positive integer, not {block!r}")
    for name, tensor in (("col_ind", col_ind), ("values", values)):
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.ndim != 2:
            raise DataError(f"from_blocked_ell: '{name}' must be a dense tensor with 2 axes")
    if col_ind.dtype not in (torch.int32, torch.int64):
        raise DataError(f"from_blocked_ell: 'col_ind' must be int32 or int64, not {col_ind.dtype}")
    wanted = [col_ind.shape[0] * block, col_ind.shape[1] * block]
    if list(values.shape) != wanted or values.device != col_ind.device:
        raise DataError(
            f"from_blocked_ell: 'values' must be {wanted} on {col_ind.device}, as 'col_ind' {list(col_ind.shape)} has "
            f"blocks of {block}, not {list(values.shape)} on {values.device}"
        )


def to_blocked_ell(packed: PackedTensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The arrays of a matrix in a format `BlockedEll(block, block)`; see `PackedTensor.to_blocked_ell`."""
    tile = getattr(packed.format, "tile", ())
    if len(tile) != 2 or tile[0] != tile[1] or not _is_blocked_ell(packed.format, tile):
        raise FormatError(
            f"cuSPARSE's Blocked-ELL has square blocks, '{packed.format}' is something else; "
            ".to(lacis.BlockedEll(16, 16)) stores the same entries so"
        )
    if any(size % tile[0] for size in packed.shape):
        raise FormatError(f"cuSPARSE's Blocked-ELL has whole blocks, {tile[0]} does not divide {list(packed.shape)}")
    col_ind = packed.storage["crd1"]
    blocks = packed.values.reshape(*col_ind.shape, *tile)
    return col_ind, blocks.transpose(1, 2).reshape(packed.shape[0], col_ind.shape[1] * tile[1])


def _is_blocked_ell(format, tile) -> bool:
    return format == BlockedEll(*tile, width=format.capacity)

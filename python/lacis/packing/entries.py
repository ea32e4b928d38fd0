# SPDX-License-Identifier: Apache-2.0
"""Entries of a torch tensor: coordinates and values, from any of torch's layouts, on its device."""

from __future__ import annotations

import dataclasses

import torch

from ..errors import DataError
from ..patterns.mask import check_mask
from ..patterns.plain import check_plain


@dataclasses.dataclass
class Entries:
    """`axes`: int64 [n] per axis; `values`: [n]. `unique` says that no two have the same coordinates."""

    shape: tuple[int, ...]
    axes: list[torch.Tensor]
    values: torch.Tensor
    unique: bool


def entries_of(tensor: torch.Tensor, mask: torch.Tensor | None = None) -> Entries:
    """What a tensor stores: all that a mask or a sparse layout names, else the elements that are not zero.

    Raises `DataError` for a mask of another shape, dtype or device, and for malformed sparse tensors.
    """
    if not isinstance(tensor, torch.Tensor):
        raise DataError(f"expected a torch tensor, not {type(tensor).__name__}; torch.as_tensor makes one of an array")
    if tensor.device.type == "meta":
        raise DataError("a tensor on meta has no values to pack; load them first")
    if tensor.ndim == 0:
        raise DataError("a tensor without axes cannot be packed")
    check_plain("the tensor", tensor)
    tensor = tensor.detach()
    if mask is not None:
        check_mask(mask, tensor)
        return _from_dense(tensor if tensor.layout == torch.strided else tensor.to_dense(), mask)
    reader = _READERS.get(tensor.layout)
    if reader is None:
        raise DataError(f"cannot pack a tensor of layout {tensor.layout}; packed are {', '.join(map(str, _READERS))}")
    return reader(tensor)


def _from_dense(tensor, mask=None) -> Entries:
    axes = torch.nonzero(tensor != 0 if mask is None else mask, as_tuple=True)
    return Entries(tuple(tensor.shape), list(axes), tensor[axes], unique=True)


def _from_coo(tensor) -> Entries:
    if tensor.dense_dim():
        raise DataError("a COO tensor with dense dimensions cannot be packed; give its last axes as sparse ones")
    indices = tensor._indices()
    check_plain("'indices'", indices)
    check_plain("'values'", tensor._values())
    for axis, length in enumerate(tensor.shape):
        _in_range(f"indices[{axis}]", indices[axis], length)
    return Entries(tuple(tensor.shape), list(indices.long()), tensor._values(), unique=tensor.is_coalesced())


def _from_compressed(tensor, by_rows: bool, blocks: bool) -> Entries:
    outer_name, inner_name = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    outer, inner = getattr(tensor, outer_name)(), getattr(tensor, inner_name)()
    values = tensor.values()
    for name, array in ((outer_name, outer), (inner_name, inner), ("values", values)):
        check_plain(f"'{name}'", array)
    if tensor.ndim != 2 or values.ndim != (3 if blocks else 1):
        raise DataError("a sparse tensor with batch or dense dimensions cannot be packed; pack its matrices one by one")
    block = values.shape[1:] if blocks else (1, 1)
    grid = [size // b for size, b in zip(tensor.shape, block)]
    lead, rest = grid if by_rows else grid[::-1]
    _check_positions(outer_name, outer, lead, inner.numel())
    _in_range(inner_name, inner, rest)
    place = torch.arange(inner.numel(), device=inner.device)
    parent = torch.searchsorted(outer[1:].long().contiguous(), place, right=True)
    row, col = (parent, inner.long()) if by_rows else (inner.long(), parent)
    if blocks:
        row, col = _inside(row, block[0], 0), _inside(col, block[1], 1)
        row, col = (t.expand(-1, *block).reshape(-1) for t in (row, col))
    return Entries(tuple(tensor.shape), [row, col], values.reshape(-1), unique=False)


def _inside(first: torch.Tensor, size: int, axis: int) -> torch.Tensor:
    """Coordinates of the elements of blocks, [blocks, size, 1] or [blocks, 1, size]."""
    offset = torch.arange(size, device=first.device)
    return (first * size)[:, None, None] + (offset[None, :, None] if axis == 0 else offset[None, None, :])


def _check_positions(name, positions, lead: int, count: int) -> None:
    if tuple(positions.shape) != (lead + 1,):
        raise DataError(f"'{name}' must have length {lead + 1}, not {positions.numel()}")
    falling = positions[1:] < positions[:-1]
    if bool(falling.any()):
        at = int(falling.to(torch.uint8).argmax())
        raise DataError(f"'{name}' must not decrease, but does after [{at}]")
    if int(positions[0]) != 0 or int(positions[-1]) != count:
        raise DataError(f"'{name}' must begin with 0 and end with the number of entries {count}")


def _in_range(name, indices, length: int) -> None:
    bad = (indices < 0) | (indices >= length)
    if bool(bad.any()):
        at = int(bad.to(torch.uint8).argmax())
        raise DataError(f"'{name}' at [{at}]: {int(indices[at])} is out of range, the axis has {length}")


_READERS = {
    torch.strided: _from_dense,
    torch.sparse_coo: _from_coo,
    torch.sparse_csr: lambda t: _from_compressed(t, by_rows=True, blocks=False),
    torch.sparse_csc: lambda t: _from_compressed(t, by_rows=False, blocks=False),
    torch.sparse_bsr: lambda t: _from_compressed(t, by_rows=True, blocks=True),
    torch.sparse_bsc: lambda t: _from_compressed(t, by_rows=False, blocks=True),
}

# SPDX-License-Identifier: Apache-2.0
"""cuSPARSE's sliced ELL arrays: where slices of rows begin, and columns and values by slice, by place, by row in it."""

from __future__ import annotations

import torch

from ..errors import DataError, FormatError
from ..formats import Sell
from .packed import PackedTensor
from .validate import from_storage


def from_sliced_ell(slice_offsets, col_ind, values, shape, slice_size: int) -> PackedTensor:
    """A matrix of this shape from the arrays of cuSPARSE's sliced ELL format, in the format `Sell(slice_size, 1)`.

    `slice_offsets` is int32 or int64 [slices + 1], where each slice of `slice_size` rows begins and the last one ends;
    `col_ind`, of the same type, and `values` are [slice_offsets[-1]] on the same device. A slice has the first entries
    of its rows side by side, then the second ones; -1 is for none, and what lies under it is not looked at. Columns of
    a row may be in any order. Differentiable in `values`.

    >>> import torch
    >>> offsets, col_ind = torch.tensor([0, 4, 6]), torch.tensor([1, 0, -1, 2, 0, -1])
    >>> packed = from_sliced_ell(offsets, col_ind, torch.arange(1.0, 7), (3, 3), slice_size=2)
    >>> packed.to_dense().tolist()
    [[0.0, 1.0, 0.0], [2.0, 0.0, 4.0], [5.0, 0.0, 0.0]]

    Raises `DataError` for arrays that do not fit each other, and for columns that are out of range or there twice.
    """
    _check(slice_offsets, col_ind, values, shape, slice_size)
    offsets, columns = slice_offsets.long(), col_ind.long()
    at = torch.arange(columns.numel(), device=columns.device)
    part = torch.searchsorted(offsets, at, right=True) - 1
    row = part * slice_size + (at - offsets[part]) % slice_size
    if bool(((columns >= 0) & (row >= shape[0])).any()):
        raise DataError(f"from_sliced_ell: 'col_ind' names a column of a row that is not there, there are {shape[0]}")
    last = torch.where(columns < 0, torch.iinfo(torch.int64).max, columns)  # padding lies behind
    source = torch.argsort(last, stable=True)
    source = source[torch.argsort(row[source], stable=True)]
    order = torch.empty_like(source).index_copy(0, torch.argsort(row, stable=True), source)
    crd = columns.clamp(min=-1)[order].to(col_ind.dtype)
    storage = {
        "perm0": torch.arange(shape[0], device=crd.device, dtype=crd.dtype),
        "pos1": (offsets // slice_size).to(crd.dtype),
        "crd3": crd,
    }
    return from_storage(Sell(slice_size, 1), tuple(shape), storage, torch.where(crd < 0, 0, values[order]))


def _check(slice_offsets, col_ind, values, shape, slice_size) -> None:
    fail = lambda message: DataError(f"from_sliced_ell: {message}")
    if isinstance(slice_size, bool) or not isinstance(slice_size, int) or slice_size < 1:
        raise fail(f"a slice must have a positive number of rows, not {slice_size!r}")
    for name, tensor in (("slice_offsets", slice_offsets), ("col_ind", col_ind), ("values", values)):
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.ndim != 1:
            raise fail(f"'{name}' must be a dense tensor with 1 axis")
    if len(shape) != 2:
        raise fail(f"the shape must have 2 sizes, not {list(shape)}")
    if slice_offsets.dtype not in (torch.int32, torch.int64) or col_ind.dtype != slice_offsets.dtype:
        raise fail(
            "'slice_offsets' and 'col_ind' must be int32 or int64, one type, not "
            f"{slice_offsets.dtype} and {col_ind.dtype}"
        )
    slices = -(-shape[0] // slice_size)
    if slice_offsets.numel() != slices + 1:
        raise fail(f"'slice_offsets' must be [{slices + 1}], as {shape[0]} rows have {slices} slices of {slice_size}")
    width = slice_offsets.diff()
    if int(slice_offsets[0]) != 0 or bool(((width < 0) | (width % slice_size != 0)).any()):
        raise fail(f"'slice_offsets' must begin at 0 and ascend by multiples of {slice_size}")
    if not int(slice_offsets[-1]) == col_ind.numel() == values.numel():
        raise fail(
            f"'col_ind' and 'values' must be [{int(slice_offsets[-1])}], as 'slice_offsets' ends there, not "
            f"{list(col_ind.shape)} and {list(values.shape)}"
        )
    if not slice_offsets.device == col_ind.device == values.device:
        raise fail(
            f"the arrays must be on one device, not {slice_offsets.device}, {col_ind.device} and {values.device}"
        )


def to_sliced_ell(packed: PackedTensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The arrays of a matrix in a format `Sell(c, 1)`, as `from_sliced_ell` takes them; the memory is shared."""
    levels = getattr(packed.format, "levels", None)
    c = levels[0].digits[0].div if levels and len(levels[0].digits) == 1 else 0
    if c < 1 or packed.format != Sell(c, 1):
        raise FormatError(
            f"cuSPARSE's sliced ELL has rows in their own order, '{packed.format}' is something else; "
            ".to(lacis.Sell(32, 1)) stores the same entries so"
        )
    perm = packed.storage["perm0"]
    if not torch.equal(perm, torch.arange(len(perm), device=perm.device, dtype=perm.dtype)):
        raise DataError("to_sliced_ell: 'perm0' has rows in another order, which cuSPARSE's arrays cannot say")
    return packed.storage["pos1"] * c, packed.storage["crd3"], packed.values

# SPDX-License-Identifier: Apache-2.0
"""From a torch tensor to a packed one, on the tensor's device."""

from __future__ import annotations

import torch

from ..patterns.build import for_tensor
from ..patterns.conversion import placed_entries
from .entries import entries_of
from .jagged import from_jagged, is_jagged
from .packed import PackedTensor
from .scipy_matrices import from_scipy, is_scipy


def pack(tensor, format, mask: torch.Tensor | None = None) -> PackedTensor:
    """Store a tensor in a format.

    `tensor` is dense, COO, CSR, CSC, BSR, BSC, a sparse matrix of SciPy, nested and jagged, or packed already, of any
    dtype; `mask`, bool of the same shape and device, names the entries. Without one they are what a sparse tensor
    stores, or the elements that are not zero. A jagged tensor that is packed ragged shares its values and offsets.
    Duplicates are kept by formats that keep them (COO), and summed for the others. Gradients do not flow back.

    >>> import torch
    >>> packed = pack(torch.tensor([[0.0, 2.0], [3.0, 0.0]]), "(i, j) -> (i : dense, j : compressed)")
    >>> packed.values.tolist(), packed.storage["crd1"].tolist()
    ([2.0, 3.0], [1, 0])

    Raises `FormatError` for a format of another rank or without code, `DataError` for malformed tensors and for
    widths that are too small.
    """
    tensor = from_scipy(tensor) if is_scipy(tensor) else tensor
    if isinstance(tensor, torch.Tensor) and tensor.is_nested and mask is None:
        tensor = from_jagged(tensor)
        format = for_tensor(format, tensor.shape)
        return tensor if is_jagged(format, tensor.shape) else tensor.to(format)
    if isinstance(tensor, PackedTensor):
        entries = tensor.entries() if mask is None else entries_of(tensor.to_dense(), mask)
    else:
        entries = entries_of(tensor, mask)
    placed = placed_entries(for_tensor(format, entries.shape), entries.shape, entries.axes, entries.unique)
    return PackedTensor(placed.pattern, placed.values(entries.values))

# SPDX-License-Identifier: Apache-2.0
"""From a torch tensor to a packed one, on the tensor's device."""

from __future__ import annotations

import math

import torch

from ..formats import Sum
from ..patterns.build import build_pattern, for_tensor
from .entries import entries_of, summed
from .packed import PackedTensor
from .scipy_matrices import from_scipy, is_scipy


def pack(tensor, format, mask: torch.Tensor | None = None) -> PackedTensor:
    """Store a tensor in a format.

    `tensor` is dense, COO, CSR, CSC, BSR, BSC, a sparse matrix of SciPy, or packed already, of any dtype; `mask`, bool
    of the same shape and device, names the entries. Without one they are what a sparse tensor stores, or the elements
    that are not zero.
    Duplicates are kept by formats that keep them (COO), and summed for the others. Gradients do not flow back.

    >>> import torch
    >>> packed = pack(torch.tensor([[0.0, 2.0], [3.0, 0.0]]), "(i, j) -> (i : dense, j : compressed)")
    >>> packed.values.tolist(), packed.storage["crd1"].tolist()
    ([2.0, 3.0], [1, 0])

    Raises `FormatError` for a format of another rank or without code, `DataError` for malformed tensors and for
    widths that are too small.
    """
    tensor = from_scipy(tensor) if is_scipy(tensor) else tensor
    if isinstance(tensor, PackedTensor):
        entries = tensor.entries() if mask is None else entries_of(tensor.to_dense(), mask)
    else:
        entries = entries_of(tensor, mask)
    format = for_tensor(format, len(entries.shape))
    parts = format.parts.values() if isinstance(format, Sum) else [format]
    if not all(part.keeps_duplicates for part in parts):
        entries = summed(entries)
    pattern, filled = build_pattern(format, entries.shape, entries.axes, entries.unique)
    values: dict[str, torch.Tensor] = {}
    for name, part in pattern.parts.items():
        source = filled[name].source
        moved = entries.values if source is None else entries.values[source]
        flat = torch.zeros(math.prod(part.values_shape), dtype=moved.dtype, device=moved.device)
        flat[filled[name].at] = moved
        values[name] = flat.reshape(part.values_shape)
    return PackedTensor(pattern, values)

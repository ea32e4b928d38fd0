# SPDX-License-Identifier: Apache-2.0
"""From a torch tensor to a packed one, on the tensor's device."""

from __future__ import annotations

import math

import torch

from ..formats import Format, Sum
from ..patterns.pattern import Pattern, as_pattern_format
from ..patterns.structure import Structure, build_structure
from .entries import Entries, entries_of, summed
from .packed import PackedTensor
from .split import split


def pack(tensor, format, mask: torch.Tensor | None = None) -> PackedTensor:
    """Store a tensor in a format.

    `tensor` is dense, COO, CSR, CSC, BSR, BSC or packed already, of any dtype; `mask`, bool of the same shape and
    device, names the entries. Without one they are what a sparse tensor stores, or the elements that are not zero.
    Duplicates are kept by formats that keep them (COO), and summed for the others. Gradients do not flow back.

    >>> import torch
    >>> packed = pack(torch.tensor([[0.0, 2.0], [3.0, 0.0]]), "(i, j) -> (i : dense, j : compressed)")
    >>> packed.values.tolist(), packed.storage["crd1"].tolist()
    ([2.0, 3.0], [1, 0])

    Raises `FormatError` for a format of another rank or without code, `DataError` for malformed tensors and for
    widths that are too small.
    """
    if isinstance(tensor, PackedTensor):
        entries = tensor.entries() if mask is None else entries_of(tensor.to_dense(), mask)
    else:
        entries = entries_of(tensor, mask)
    format = as_pattern_format(format, len(entries.shape))
    parts = format.parts if isinstance(format, Sum) else {"": format}
    if not all(part.keeps_duplicates for part in parts.values()):
        entries = summed(entries)
    structures: dict[str, Structure] = {}
    values: dict[str, torch.Tensor] = {}
    for name, part in parts.items():
        mine = entries
        if isinstance(format, Sum) and name in format.predicates:
            mine, entries = split(part, format.predicates[name], entries)
        structures[name], values[name] = _pack_part(part, mine)
    return PackedTensor(Pattern(format, _one_width(structures)), values)


def _pack_part(format: Format, entries: Entries) -> tuple[Structure, torch.Tensor]:
    structure, at, order = build_structure(format, entries.shape, entries.axes, entries.unique)
    moved = entries.values if order is None else entries.values[order]
    values = torch.zeros(math.prod(structure.values_shape), dtype=moved.dtype, device=moved.device)
    values[at] = moved
    return structure, values.reshape(structure.values_shape)


def _one_width(structures: dict[str, Structure]) -> dict[str, Structure]:
    """All parts with int64 arrays when one needs them."""
    wide = any(t.dtype == torch.int64 for part in structures.values() for t in part.buffers.values())
    if not wide or len(structures) == 1:
        return structures
    return {
        name: part.mapped(lambda t: t.long() if t.dtype == torch.int32 else t) for name, part in structures.items()
    }

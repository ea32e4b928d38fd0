# SPDX-License-Identifier: Apache-2.0
"""The values of a dense tensor at the entries of a pattern, and back."""

from __future__ import annotations

import math

import torch

from ..errors import DataError
from ..formats import Sum


def gather(pattern, tensor: torch.Tensor):
    """See `Pattern.gather`."""
    if tensor.shape != pattern.shape or tensor.device != pattern.device:
        what = f"shape {list(tensor.shape)} on {tensor.device}"
        raise DataError(f"the tensor has {what}, the pattern {list(pattern.shape)} on {pattern.device}")
    values = {}
    for name, part in pattern.parts.items():
        axes, valid = part.coordinates()
        if part.repeats:
            again = torch.ones(len(valid) - 1, dtype=torch.bool, device=pattern.device)
            for axis in axes:
                again &= axis[1:] == axis[:-1]
            valid = torch.cat([valid[:1], valid[1:] & ~again])
        flat = torch.zeros(len(valid), dtype=tensor.dtype, device=tensor.device)
        at = valid.nonzero().reshape(-1)
        flat = flat.index_put((at,), tensor[tuple(axis[at] for axis in axes)])
        values[name] = flat.reshape(part.values_shape)
    return values if isinstance(pattern.format, Sum) else values[""]


def scatter(pattern, values: dict[str, torch.Tensor]) -> torch.Tensor:
    """The dense tensor of the values of each part, 0 where there is no entry; entries at one place are summed.

    >>> from lacis.patterns import Pattern
    >>> p = Pattern.from_mask(torch.tensor([[True, False], [True, True]]), "(i, j) -> (i : dense, j : compressed)")
    >>> scatter(p, {"": torch.tensor([1.0, 2.0, 3.0])}).tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    count = math.prod(pattern.shape)
    dense = next(iter(values.values())).new_zeros(count)
    for name, part in pattern.parts.items():
        axes, valid = part.coordinates()
        linear = torch.zeros_like(axes[0])
        for axis, length in zip(axes, pattern.shape):
            linear = linear * length + axis
        flat = values[name].reshape(-1)
        if part.has_room:  # whose entries the host does not count: the others go behind the last place
            linear, beside = torch.where(valid, linear, count), torch.cat([dense, dense.new_zeros(1)])
            dense = beside.index_put((linear,), flat, accumulate=part.repeats)[:-1]
        else:
            dense = dense.index_put((linear[valid],), flat[valid], accumulate=part.repeats)
    return dense.reshape(pattern.shape)

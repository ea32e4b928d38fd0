# SPDX-License-Identifier: Apache-2.0
"""The values of a dense tensor at the entries of a pattern."""

from __future__ import annotations

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

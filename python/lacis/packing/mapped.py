# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions of packed tensors that see coordinates."""

from __future__ import annotations

import torch

from ..errors import DataError


def mapped(packed, function):
    """`PackedTensor.map`: padding goes in as 0 and comes out as 0, whatever the function makes of it."""
    from .packed import PackedTensor

    values = {}
    for name, part in packed.pattern.parts.items():
        axes, valid = part.coordinates()
        axes = [axis.clamp(max=max(length - 1, 0)) for axis, length in zip(axes, part.shape)]
        stored = packed.values_by_part[name].reshape(-1)
        found = function(torch.where(valid, stored, 0), *axes)
        if not isinstance(found, torch.Tensor) or found.shape not in (stored.shape, ()):
            what = list(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
            raise DataError(
                f"map: the function must answer {stored.numel()} values, a tensor {list(stored.shape)}, not {what}"
            )
        values[name] = torch.where(valid, found, 0).reshape(part.values_shape)
    return PackedTensor(packed.pattern, values)

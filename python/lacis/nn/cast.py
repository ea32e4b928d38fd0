# SPDX-License-Identifier: Apache-2.0
"""A layer's kernels in the dtype of an autocast region, with arrays of their own: copies of values in that dtype."""

from __future__ import annotations

import dataclasses

import torch


@dataclasses.dataclass
class Cast:
    """What a `SparseModule` runs where the dtype is another than its kernel's: the family of its kernel in that dtype.

    It is that of a region of `torch.autocast`, or that of the values where something cast them for the call alone, as
    FSDP does. In a region the parameter stays in its own dtype and is cast in each call. `arrays` and `companions`
    say where the kernel's and its gradients' arrays are.
    """

    dtype: torch.dtype
    family: object
    arrays: list[tuple[str, str]]
    companions: list[tuple[str, str]]

    def bind_gradients(self, weight, slots) -> None:
        """As `SparseModule.bind_gradients`."""
        self.companions = weight.bind(self.family.bind(slots).companions, self.dtype)


def cast_of(module) -> Cast | None:
    """What the module runs in another dtype than its own kernel's, compiled at the first call; None where that serves.

    A graph that is being traced takes what is there; without it the operator casts on its own, to a kernel that walks
    the arrays of the call.
    """
    weight = module.weight
    device, dtype = weight.device.type, weight.dtype
    if torch.is_autocast_enabled(device) and dtype != torch.float64:
        dtype = torch.get_autocast_dtype(device)
    if dtype == module.dtype:
        return None
    found = module._casts.get(dtype)
    if found is None and not torch.compiler.is_compiling():
        found = module._casts[dtype] = _make(module, dtype)
    return found


def _make(module, dtype: torch.dtype) -> Cast:
    weight = module.weight
    kernel = module.loader(module.spec().with_dtype(dtype), module.target, weight.device)
    family = kernel.scheduled(module.gradient_steps)
    arrays = weight.bind(kernel.names, dtype)
    cast = Cast(dtype, family, arrays, [])
    cast.bind_gradients(weight, module._bound)
    return cast

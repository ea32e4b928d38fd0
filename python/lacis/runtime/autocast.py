# SPDX-License-Identifier: Apache-2.0
"""Autocast: under `torch.autocast` an einsum runs the kernel of the region's dtype, on values cast to it."""

from __future__ import annotations

import torch

from .gradients import find_family

_libraries: list[torch.library.Library] = []


def register() -> None:
    """Give both overloads of `lacis::einsum` an autocast kernel on the CPU and on CUDA."""
    library = torch.library.Library("lacis", "IMPL")
    for device, key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
        for name, overload in (("einsum", "default"), ("einsum.inference", "inference")):
            library.impl(name, _kernel(overload, device, key), key)
    _libraries.append(library)  # it takes its kernels along when it dies


def _kernel(overload: str, device: str, key: str):
    above = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def einsum(operands, storage, shape, kernel_key, packed_shape=(), companions=()):
        operator = getattr(torch.ops.lacis.einsum, overload)
        dtype = torch.get_autocast_dtype(device)
        family = find_family(kernel_key)
        if family is not None and family.kernel.spec.dtype not in (dtype, torch.float64):
            family, storage, companions = family.cast(dtype, storage, companions)
            kernel_key = family.key
        rest = () if overload == "inference" else (companions,)
        with torch._C._ExcludeDispatchKeyGuard(above):
            dense, arrays = _cast(operands, dtype, family), _cast(storage, dtype, family)
            return operator(dense, arrays, shape, kernel_key, packed_shape, *rest)

    return einsum


def _cast(tensors, dtype, family):
    """The floating-point tensors in the dtype of the region, save where the kernel has no other one."""
    if family is None or family.kernel.spec.dtype != dtype:
        return tensors
    return [tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in tensors]

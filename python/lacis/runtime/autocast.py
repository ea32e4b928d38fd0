# SPDX-License-Identifier: Apache-2.0
"""Autocast: under `torch.autocast` an einsum runs the kernel of the region's dtype, on values cast to it."""

from __future__ import annotations

import contextlib

import torch

from ..capture import DTYPES, Epilogue
from ..patterns import Pattern
from .gradients import find_family

_libraries: list[torch.library.Library] = []


def register() -> None:
    """Give the overloads of `lacis::einsum` an autocast kernel on the CPU and on CUDA."""
    library = torch.library.Library("lacis", "IMPL")
    for device, key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
        for name, kernel in _KERNELS:
            library.impl(name, kernel(device, torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))), key)
    _libraries.append(library)  # it takes its kernels along when it dies


def _default(device: str, above):
    def einsum(operands, storage, shape, kernel_key, packed_shape=(), companions=()):
        dtype = torch.get_autocast_dtype(device)
        family, kernel_key, storage, companions = family_of(dtype, kernel_key, storage, companions)
        with torch._C._ExcludeDispatchKeyGuard(above):
            dense, arrays = cast_all(operands, storage, dtype, family)
            return torch.ops.lacis.einsum.default(dense, arrays, shape, kernel_key, packed_shape, companions)

    return einsum


def _inference(device: str, above):
    def einsum(tensors, sizes, kernel_key):
        dtype = torch.get_autocast_dtype(device)
        found = find_family(kernel_key)
        count = len(found.dense) if found else len(tensors)
        family, kernel_key, storage, _ = family_of(dtype, kernel_key, tensors[count:], ())
        with torch._C._ExcludeDispatchKeyGuard(above):
            dense, arrays = cast_all(tensors[:count], storage, dtype, family)
            return torch.ops.lacis.einsum.inference([*dense, *arrays], sizes, kernel_key)

    return einsum


def _exported(device: str, above):
    run = _default(device, above)

    def einsum(tensors, operands, shape, kernel_key, packed_shape):
        return run(tensors[:operands], tensors[operands:], shape, kernel_key, packed_shape)

    return einsum


_KERNELS = (("einsum", _default), ("einsum.exported", _exported), ("einsum.inference", _inference))


def family_of(dtype, kernel_key, storage, companions):
    """The family that runs in the region's dtype, its key, and the arrays that its kernel takes."""
    family = find_family(kernel_key)
    if family is None or family.kernel.spec.narrow in (dtype, torch.float64):
        return family, kernel_key, storage, companions
    family, storage, companions = family.cast(dtype, storage, companions)
    return family, family.key, storage, companions


def cast_all(operands, storage, dtype, family):
    """The floating-point tensors as the kernel of the region takes them, save where it has no other dtype."""
    if family is None or family.kernel.spec.narrow != dtype:
        return operands, storage
    return family.as_taken(operands, storage)


def outside(kind: str):
    """What leaves an autocast region of this kind of device, where there is one; else torch would take 5 µs for it.

    >>> with torch.autocast("cpu"), outside("cpu"):
    ...     torch.is_autocast_enabled("cpu")
    False
    """
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else contextlib.nullcontext()


def in_region(operands, epilogue):
    """Operands and an epilogue in the dtype of an autocast region, where they are in one; doubles and bools stay."""
    device = operands[0].device.type
    dtypes = {operand.dtype for operand in operands if not isinstance(operand, Pattern)}
    dtype = torch.get_autocast_dtype(device)
    stay = dtypes <= {dtype} or not dtypes <= set(DTYPES) - {torch.float64}
    if stay or not torch.is_autocast_enabled(device):
        return operands, epilogue
    cast = [operand if isinstance(operand, Pattern) else operand.to(dtype) for operand in operands]
    return cast, epilogue.to(dtype) if isinstance(epilogue, Epilogue) else epilogue

# SPDX-License-Identifier: Apache-2.0
"""The Python side of the torch operators: loading them, their fake kernels, their gradient."""

from __future__ import annotations

import functools
import os
import threading

import torch

import lacis
from lacis import knobs
from lacis.errors import CompileError, DataError, Error
from lacis.nn.recorded import may_record
from lacis.patterns.transforms import is_transformed

from . import node


def _library_path(name: str) -> str | None:
    paths = [os.path.join(folder, name) for folder in lacis.__path__]
    return next(filter(os.path.exists, paths), None)


def _load() -> None:
    path = _library_path("_ops.so")
    if path is None:
        raise Error(f"lacis is not built: '_ops.so' is in none of {list(lacis.__path__)}", location=None)
    torch.ops.load_library(path)
    if (built := node.find()) is not None:
        torch.ops.load_library(built)


def refuse_meta(tensors) -> None:
    """Raise where some tensors have no memory because they lie on the meta device, and others are real.

    Torch runs the fake kernel of such a call, whose answer holds nothing.
    """
    meta = [n for n, tensor in enumerate(tensors) if tensor.device.type == "meta"]
    if meta and len(meta) < len(tensors):
        raise RuntimeError(
            f"lacis data: tensor {meta[0]} of the call lies on the meta device, where nothing is stored, and others do "
            "not; load it, or move all of them"
        )


def _fake(operands, storage, shape, kernel_key, packed_shape=(), companions=()):
    refuse_meta([*operands, *storage])
    like = operands[0] if operands else next(s for s in storage if s.is_floating_point())
    return like.new_empty(shape, dtype=output_dtype(kernel_key, like))


def _fake_exported(tensors, operands, shape, kernel_key, packed_shape):
    return _fake(tensors[:operands], tensors[operands:], shape, kernel_key)


def _fake_inference(tensors, sizes, kernel_key):
    refuse_meta(tensors)
    like = next(tensor for tensor in tensors if tensor.is_floating_point())
    return like.new_empty(sizes[1 : 1 + sizes[0]], dtype=output_dtype(kernel_key, like))


def output_dtype(kernel_key: str, operand: torch.Tensor) -> torch.dtype:
    """What the kernel answers: some keep the float32 in which they sum half types up."""
    from lacis import _core

    from .gradients import find_family

    family = find_family(kernel_key)
    known = _FLOATS.get(_core.output_dtype(kernel_key)) if family is None else family.kernel.spec.dtype
    return known if known is not None and known.is_floating_point else operand.dtype


# By their numbers in include/lacis-c/lacis_runtime.h.
_FLOATS = {1: torch.float16, 2: torch.bfloat16, 3: torch.float32, 4: torch.float64}


_lock = threading.Lock()


def register() -> None:
    """Loads the operators into this process; the second call does nothing."""
    with _lock:
        _register()


@functools.cache
def _register() -> None:
    _load()
    torch.library.register_fake("lacis::einsum", _fake)
    torch.library.register_fake("lacis::einsum.exported", _fake_exported)
    torch.library.register_fake("lacis::einsum.inference", _fake_inference)
    from . import autocast, bound, exported, gradients, pattern_kernels

    torch.library.register_autograd("lacis::einsum", gradients.backward, setup_context=gradients.setup_context)
    exported.register()
    autocast.register()
    bound.register()
    pattern_kernels.register()
    if knobs.kernel_path:
        from lacis import _core

        _core.set_kernel_path(os.pathsep.join(knobs.kernel_path))


def einsum(operands, storage, shape, kernel_key, packed_shape=(), companions=()):
    """Runs the kernel `kernel_key`, through the overload for inference where nobody looks on.

    `companions` are the arrays that its gradients walk, see `lacis.runtime.gradients`. `register` must have been
    called. Traced graphs get the overload that is right in either mode.
    """
    if torch.compiler.is_compiling():
        if torch.compiler.is_exporting() and not companions:
            tensors = [*operands, *storage]
            return torch.ops.lacis.einsum.exported(tensors, len(operands), shape, kernel_key, packed_shape)
        return torch.ops.lacis.einsum.default(operands, storage, shape, kernel_key, packed_shape, companions)
    if is_transformed():
        return transformed().einsum(operands, storage, shape, kernel_key, packed_shape, companions)
    try:
        tensors, sizes = [*operands, *storage], [len(shape), *shape, *packed_shape]
        if not torch.is_grad_enabled():
            return inference()(tensors, sizes, kernel_key)
        if not may_record(tensors[0].device):
            return torch.ops.lacis.einsum.default(operands, storage, shape, kernel_key, packed_shape, companions)
        numbers = len(operands), len(storage)
        return _recorded().apply(inference(), kernel_key, sizes, *numbers, *tensors, *companions)
    except RuntimeError as error:
        raise refusal(error) from error


def chain(operands, storage, shape, kernel_key, packed_shape, others) -> list[torch.Tensor]:
    """Runs a kernel of several results: the first, of `shape`, and those of the shapes and dtypes `others`.

    The kernel writes the latter where operands lie, behind those that it reads.
    """
    if others and torch.compiler.is_compiling():
        raise NotImplementedError("a kernel of several results is no operator of torch.compile; return one")
    written = [torch.empty(sizes, dtype=dtype, device=operands[0].device) for sizes, dtype in others]
    return [einsum([*operands, *written], storage, shape, kernel_key, packed_shape), *written]


@functools.cache
def _recorded():
    from .recorded import Recorded

    return Recorded


@functools.cache
def transformed():
    """What runs where a transform of `torch.func` looks on, or forward mode."""
    from . import transformed

    return transformed


@functools.cache
def inference():
    """The overload for inference as torch calls it: `(tensors, sizes, kernel_key)`, see python/ops/einsum.cpp."""
    overload = torch.ops.lacis.einsum.inference
    return getattr(overload, "_op", overload)  # without the layer of Python in between, where torch has it


def refusal(error: RuntimeError) -> Exception:
    """What the launcher refused as an error of Lacis; any other error as it is."""
    for prefix, kind in (("lacis data: ", DataError), ("lacis kernel: ", CompileError)):
        if str(error).startswith(prefix):
            return kind(str(error)[len(prefix) :])
    return error

# SPDX-License-Identifier: Apache-2.0
"""Calls that are bound to all their tensors, or all but the first one or two, see python/ops/bound.h."""

from __future__ import annotations

import atexit
import functools
import weakref

import torch

from ..patterns.seen import graphs

_calls: weakref.WeakValueDictionary[int, BoundCall | BoundPair | BoundFill] = weakref.WeakValueDictionary()


class BoundCall:
    """A kernel on given tensors: `run(x, call.number)` gives it the first operand.

    `tensors` are its other dense operands and its storage; they are kept as long as this object, and what they hold
    is looked at in each call. The output has the shape of the first operand, whose `dropped` last sizes `tail`
    replaces. `otherwise(x)` is what runs in an autocast region. Each call makes those of `fills` before.
    """

    def __init__(self, tensors, key: str, packed_shape, dropped: int, tail, otherwise=None, fills=()):
        _refuse_at_exit()
        self.key, self.dropped, self.tail, self.otherwise = key, dropped, list(tail), otherwise
        numbers = [fill.number for fill in fills]
        self.number = torch.ops.lacis.bind.default(tensors, key, list(packed_shape), dropped, self.tail, numbers)
        _note(self)


class BoundPair:
    """The same where the first two dense operands come later: `run_pair(x, y, call.number)` answers in `shape`."""

    def __init__(self, tensors, key: str, packed_shape, shape):
        _refuse_at_exit()
        self.key, self.shape = key, list(shape)
        self.number = torch.ops.lacis.bind.pair(tensors, key, list(packed_shape), self.shape)
        _note(self)


class BoundFill:
    """The same where no operand comes later, and the output is a tensor that is there: each call fills it anew."""

    def __init__(self, tensors, key: str, into: torch.Tensor):
        _refuse_at_exit()
        self.key, self._run = key, _direct(torch.ops.lacis.fill.default)
        self.number = torch.ops.lacis.bind.fill(tensors, key, into)
        _note(self)

    def __call__(self) -> None:
        self._run(self.number)


class BoundLayer:
    """A layer's calls as a node of torch's autograd that runs without Python, see python/node/node.cpp.

    `trained` are the values of its parts and the vectors that are added to the product, `counted` tensors whose
    versions grow with the pattern. `of_input` is the call that gives the input's gradient (None: it has none), and
    `of_values` those of the values', each with whether it takes the input before the product's gradient. The last
    `tail` dimensions of the product are not the input's. `has_copies` says that the gradients' calls read copies of
    values, which each call must have filled. `run(x, owner, layer.number, call.number, revision)` is one, and calls
    `owner.bound.otherwise(...)` where a backward pass is not served.
    """

    def __init__(self, trained, counted, of_input, of_values, tail: int, has_copies: bool):
        _refuse_at_exit()
        of_input = 0 if of_input is None else of_input.number
        numbers, first = [call.number for call, _ in of_values], [int(first) for _, first in of_values]
        self.number = torch.ops.lacis.record(trained, counted, graphs, of_input, numbers, first, tail, has_copies)
        self.run = _direct(torch.ops.lacis.recorded.default)
        weakref.finalize(self, torch.ops.lacis.record.forget, self.number).atexit = False


def _note(call: BoundCall | BoundPair | BoundFill) -> None:
    """Have the call found by its number as long as it lives, and its tensors given back then."""
    weakref.finalize(call, torch.ops.lacis.unbind, call.number).atexit = False
    _calls[call.number] = call


_ended: list[bool] = []


def ended() -> bool:
    """Does the interpreter exit? Then nothing is bound any more."""
    return bool(_ended)


def _refuse_at_exit() -> None:
    if ended():
        raise RuntimeError("no calls are bound while the interpreter exits")


@atexit.register
def _release() -> None:
    """Lets go of all tensors. Where the interpreter takes one apart that C++ still holds, torch aborts."""
    _ended.append(True)
    for number in list(_calls):
        torch.ops.lacis.unbind(number)


@functools.cache
def run():
    """The overload of a bound call as torch calls it: `(x, number)`."""
    return _direct(torch.ops.lacis.einsum.bound)


@functools.cache
def run_pair():
    """The overload of a call that was bound for two operands: `(x, y, number)`."""
    return _direct(torch.ops.lacis.einsum.bound_pair)


@functools.cache
def changed():
    """The function of C that says whether tensors are what they were, see python/bindings/held.h."""
    from lacis import _core

    return _core.held


def _direct(overload):
    return getattr(overload, "_op", overload)  # without the layer of Python in between, where torch has it


def register() -> None:
    """The fake kernel, and what runs in an autocast region; no gradients are recorded, and nothing looks for them."""
    library = torch.library.Library("lacis", "IMPL")
    for device, key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
        library.impl("einsum.bound", _autocast(device, getattr(torch._C.DispatchKey, key)), key)
    for name, fake in (("einsum.bound", _fake), ("einsum.bound_pair", _fake_pair)):
        library.impl(name, torch.library.fallthrough_kernel, "Autograd")
        torch.library.register_fake(f"lacis::{name}", fake)
    if has_node():
        library.impl("recorded.otherwise", _otherwise, "CompositeImplicitAutograd")
    _libraries.append(library)


def bind_layer(*arguments) -> BoundLayer | None:
    """`BoundLayer(*arguments)`, or None where no node of autograd was built for this torch."""
    return BoundLayer(*arguments) if has_node() else None


@functools.cache
def has_node() -> bool:
    """Is a node of autograd loaded?"""
    return hasattr(torch.ops.lacis, "record")


def _otherwise(owner, *arguments):
    return owner.bound.otherwise(*arguments)


_libraries: list[torch.library.Library] = []  # each takes its kernels along when it dies


def _refuse_meta(*operands) -> None:
    """What a call was bound to is real."""
    if any(operand.device.type == "meta" for operand in operands):
        raise RuntimeError("lacis data: an operand lies on the meta device, where nothing is stored; the others do not")


def _fake(x, number):
    from .library import output_dtype

    _refuse_meta(x)
    call = _calls[number]
    return x.new_empty([*x.shape[: x.ndim - call.dropped], *call.tail], dtype=output_dtype(call.key, x))


def _fake_pair(x, y, number):
    from .library import output_dtype

    _refuse_meta(x, y)
    call = _calls[number]
    return x.new_empty(call.shape, dtype=output_dtype(call.key, x))


def _autocast(device: str, key):
    def bound(x, number):
        call = _calls[number]
        if call.otherwise is not None:
            return call.otherwise(x)
        from .gradients import find_family

        family = find_family(call.key)
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return run()(x if family is None else x.to(family.dense[0].dtype), number)

    return bound

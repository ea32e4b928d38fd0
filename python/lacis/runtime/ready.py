# SPDX-License-Identifier: Apache-2.0
"""Calls of a kernel in inference that are like one before: bound to their packed operand, they look up little."""

from __future__ import annotations

import weakref

import torch

from .. import knobs
from ..capture.gradient import VALUES
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.transforms import is_transformed
from .bound import BoundCall, BoundPair, ended, run_pair
from .bound import run as run_bound

_dispatch_modes = torch._C._len_torch_dispatch_stack
_MOST = 16  # shapes of the dense operand that are kept for one packed operand


def ready_calls(call, kernels) -> ReadyCalls | ReadySamples:
    """Where calls of the kernels of one einsum are kept ready."""
    return (ReadySamples if call.sampled else ReadyCalls)(call, kernels)


def infers() -> bool:
    """Is this inference that nobody but torch's own dispatcher looks at?"""
    return (
        not torch.is_grad_enabled()
        and not _dispatch_modes()
        and not is_transformed()
        and not torch._C._is_any_autocast_enabled()
        and not torch.compiler.is_compiling()
        and not (knobs.is_given("debug") and knobs.debug)
    )


class ReadyCalls:
    """The calls of one einsum's kernel on a packed and a dense operand, by packed operand and shape of the dense one;
    what its epilogue reads is that of `compile`.

    They hold the arrays of a packed operand no longer than it lives and has these values. What is not like before, or
    not inference alone (a gradient, autocast, a mode that looks at every operator), is left to the way that looks at
    all of it.
    """

    def __init__(self, call, kernels):
        self._known: weakref.WeakKeyDictionary[PackedTensor, tuple] = weakref.WeakKeyDictionary()
        self._packed, self._run = call.packed, run_bound()
        operands = call.operands
        self._after = () if call.epilogue is None else tuple(call.epilogue.tensors)
        self._able = len(operands) == 2 and isinstance(operands[call.packed], PackedTensor)
        self._able = self._able and all(type(tensor) in (torch.Tensor, torch.nn.Parameter) for tensor in self._after)
        self._able = self._able and call.fused and not call.by_entry and call.dtype != torch.bool

    def run(self, operands) -> torch.Tensor | None:
        """The result, or None where nothing is ready for these operands."""
        if not self._able or not self._is_plain(operands):
            return None
        packed, dense = operands[self._packed], operands[1 - self._packed]
        values, changes, calls = self._known.get(packed, (None, None, None))
        same = values is packed._values and changes == packed.pattern.changes
        call, copies = calls.get(dense.shape, (None, ())) if same else (None, ())
        if call is None or any(packed.kept_copy(*which) is not tiles for which, tiles in copies):
            return None
        try:
            return self._run(dense, call.number)
        except RuntimeError:  # the other way says what is wrong
            return None

    def keep(self, operands, kernel, result) -> None:
        """Make the call that just ran ready to run again."""
        if not self._able or not self._is_plain(operands) or ended():
            return
        packed, dense = operands[self._packed], operands[1 - self._packed]
        values, changes, calls = self._known.get(packed, (None, None, {}))
        now = packed.pattern.changes
        if values is not packed._values or changes != now or len(calls) >= _MOST:
            calls = {}
        arrays = kernel.arrays(packed)
        tensors = [*self._after, *arrays]
        call = BoundCall(tensors, kernel.family.key, packed.shape, dense.ndim, result.shape)
        named = zip(kernel.names, arrays)
        copies = [((part, step), tiles) for (part, step, name), tiles in named if step and name == VALUES]
        calls[dense.shape] = call, copies
        self._known[packed] = packed._values, now, calls

    def _is_plain(self, operands) -> bool:
        """Are these tensors in inference alone?"""
        return (
            len(operands) == 2
            and type(operands[1 - self._packed]) is torch.Tensor
            and type(operands[self._packed]) is PackedTensor
            and infers()
        )


class ReadySamples:
    """The calls of one einsum's kernel on a pattern, at whose entries it is sampled, and two dense operands, by pattern
    and shapes of the dense ones. What is not like before is left to the way that looks at all of it.

    Of a pattern that batches or heads share the result is on the one below them, which the pattern keeps itself: held
    here, it would keep the pattern alive.
    """

    def __init__(self, call, kernels):
        self._known: weakref.WeakKeyDictionary[Pattern, tuple] = weakref.WeakKeyDictionary()
        self._packed, self._run = call.packed, run_pair()
        self._dense = [number for number in range(len(call.operands)) if number != call.packed]
        self._letters = call.output
        in_order = call.output == call.terms[call.packed]  # else the result is transposed
        self._able = len(self._dense) == 2 and call.epilogue is None and in_order and set(call.pieces) == {""}
        self._able = self._able and call.dtype != torch.bool

    def run(self, operands) -> PackedTensor | None:
        """The result, or None where nothing is ready for these operands."""
        if not self._able or not self._is_plain(operands):
            return None
        pattern, (x, y) = operands[self._packed], [operands[number] for number in self._dense]
        changes, calls = self._known.get(pattern, (None, None))
        call, batch = calls.get((x.shape, y.shape), (None, ())) if changes == pattern.changes else (None, ())
        if call is None:
            return None
        try:
            return PackedTensor(self._below(pattern, batch), {"": self._run(x, y, call.number)})
        except RuntimeError:  # the other way says what is wrong
            return None

    def keep(self, operands, kernel, result) -> None:
        """Make the call that just ran ready to run again."""
        if not self._able or not self._is_plain(operands) or ended():
            return
        pattern, shapes = operands[self._packed], tuple(operands[number].shape for number in self._dense)
        batch = tuple(result.pattern.shape[: -len(pattern.shape)])
        sampled = self._below(pattern, batch)
        if result.pattern is not sampled:
            return
        changes, calls = self._known.get(pattern, (None, {}))
        if changes != pattern.changes or len(calls) >= _MOST:
            calls = {}
        arrays = kernel.arrays(sampled)
        calls[shapes] = BoundPair(arrays, kernel.family.key, sampled.shape, result.values.shape), batch
        self._known[pattern] = pattern.changes, calls

    def _below(self, pattern: Pattern, batch: tuple) -> Pattern:
        """The pattern that has the entries for each of these batches or heads; without any itself."""
        return pattern.batched(batch, "".join(self._letters[: len(batch)])) if batch else pattern

    def _is_plain(self, operands) -> bool:
        """Are these tensors in inference alone?"""
        dense = len(operands) == 3 and all(type(operands[number]) is torch.Tensor for number in self._dense)
        return dense and type(operands[self._packed]) is Pattern and infers()


class ReadyEinsums:
    """The ready calls of einsums that nobody compiled beforehand, by packed operand and by all else that is said."""

    def __init__(self):
        self._known: weakref.WeakKeyDictionary[PackedTensor, dict[tuple, ReadyCalls]] = weakref.WeakKeyDictionary()

    def run(self, said: tuple, operands) -> torch.Tensor | None:
        """The result, or None where nothing is ready for these operands."""
        for operand in operands:
            if type(operand) is PackedTensor:
                ready = self._known.get(operand, {}).get(said)
                return None if ready is None else ready.run(operands)
        return None

    def keep(self, said: tuple, call, kernels, result) -> None:
        """Make the call that just ran ready to run again, unless gradients are recorded."""
        packed = call.operands[call.packed]
        if torch.is_grad_enabled() or type(packed) is not PackedTensor:
            return
        known = self._known.setdefault(packed, {})
        if said not in known:
            if len(known) >= _MOST:
                known.clear()
            known[said] = ReadyCalls(call, kernels)
        known[said].keep(call.operands, kernels.get(""), result)

# SPDX-License-Identifier: Apache-2.0
"""Einsums in inference on a pattern with new values each time, as the scores of attention have: launched as before."""

from __future__ import annotations

import dataclasses
import weakref

import torch

from ..capture.gradient import VALUES
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.capturing import is_captured
from . import library
from .fitted import kind_of_call
from .ready import infers

_KEY = "repeated einsums"
_MOST = 64  # einsums and shapes on one pattern, as many as are captured


@dataclasses.dataclass(frozen=True)
class _Launch:
    """All that a kernel takes but values and dense operands; `arrays` has None where the values are."""

    key: str
    arrays: tuple[torch.Tensor | None, ...]
    sizes: list[int]
    sampled: bool
    batched: Pattern | None  # of a sampled result with batch letters

    def run(self, operands, packed: int) -> torch.Tensor | PackedTensor:
        own = operands[packed]
        values = own if isinstance(own, Pattern) else own.values
        tensors = [operand for number, operand in enumerate(operands) if number != packed]
        tensors += [values if array is None else array for array in self.arrays]
        result = library.inference()(tensors, self.sizes, self.key)
        return PackedTensor(self.batched or _pattern_of(own), {"": result}) if self.sampled else result


class RepeatedEinsums:
    """The launches of einsums by pattern and kind of the operands.

    A packed operand that comes a second time is left to the way that binds it, which takes half as long.
    """

    def __init__(self):
        self._once: weakref.WeakSet[PackedTensor] = weakref.WeakSet()

    def run(self, said: tuple, operands) -> torch.Tensor | PackedTensor | None:
        """The result, or None where no such einsum was launched before."""
        packed = _packed(operands)
        if packed is None or not infers():
            return None
        own = operands[packed]
        known = _pattern_of(own)._kept.get(_KEY)
        launch = known.get(kind_of_call(said, operands, packed)) if known else None
        if launch is None or type(own) is PackedTensor and own in self._once:
            return None
        if type(own) is PackedTensor:
            self._once.add(own)
        try:
            return launch.run(operands, packed)
        except RuntimeError:  # the other way says what is wrong
            return None

    def keep(self, said: tuple, operands, call, kernel) -> None:
        """Have the einsum that just ran as `call` launched again, if it is one kernel's with such a result."""
        packed = _packed(operands)
        if packed is None or not infers() or not call.fused or call.dtype == torch.bool or is_captured(call.device):
            return
        pattern, in_order = _pattern_of(operands[packed]), call.output == call.terms[call.packed]
        if set(pattern.parts) != {""} or (call.sampled and not in_order) or pattern._kept.is_of_graph:
            return
        if any(step and name == VALUES for _, step, name in kernel.names):  # a copy of these values
            return
        given = call.operands[call.packed]
        arrays = tuple(None if name == VALUES else given.array(part, step, name) for part, step, name in kernel.names)
        shape = call.pattern.part().values_shape if call.sampled else [call.sizes[letter] for letter in call.output]
        sizes = [len(shape), *shape, *given.shape]
        known = pattern._kept.setdefault(_KEY, {})
        if len(known) >= _MOST:
            known.clear()
        batched = None if call.pattern is pattern else call.pattern
        launch = _Launch(kernel.family.key, arrays, sizes, call.sampled, batched)
        known[kind_of_call(said, operands, packed)] = launch


def _pattern_of(own: PackedTensor | Pattern) -> Pattern:
    return own if type(own) is Pattern else own.pattern


def _packed(operands) -> int | None:
    """The number of the packed operand, or of the pattern."""
    for number, operand in enumerate(operands):
        if type(operand) is PackedTensor or type(operand) is Pattern:
            return number
    return None

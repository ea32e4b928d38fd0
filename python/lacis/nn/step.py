# SPDX-License-Identifier: Apache-2.0
"""A layer's call that autograd records, on tensors that were bound beforehand: forward and backward look up little."""

from __future__ import annotations

import torch

from ..capture.gradient import VALUES
from ..patterns.capturing import is_captured
from .bound_step import Bound
from .quick import Watched, _dispatch_modes
from .recorded import may_record


class QuickSteps:
    """Calls the kernels of one `SparseModule` where gradients are recorded, with all tensors but the input bound.

    A call answers None, and leaves it to the module's slower way, where a `QuickStep` cannot serve it: other than one
    dense operand beside the bias, autocast, a mode or a transform that looks at every operator, an input that the
    kernel refuses, or a CUDA graph that is captured, which has copies of values of its own.
    """

    def __init__(self, module, operator):
        family = module.family()
        self._module, self._operator = module, operator
        self._parts, self._extras = family.value_parts, operator.extras(module)
        self._able = len(family.dense) == 1 + len(self._extras) and not family.kernel.spec.sampled
        self._steps: dict[tuple, QuickStep | None] = {}  # by which tensors require gradients
        self._last: QuickStep | None = None

    def __call__(self, x):
        if _dispatch_modes() or not may_record(x.device):
            return None
        try:
            made = None if self._last is None else self._last.found()
            if made is None or not made.serves(x):
                made = self._find(x)
            if made is None or (made.has_copies and is_captured(x.device)):
                return None
            return made.recorded(x)
        except (AttributeError, KeyError, RuntimeError):
            return None  # the other way says what is wrong

    def _find(self, x) -> Bound | None:
        """What is bound for the tensors that require gradients in this call."""
        module = self._module
        trained = [module.weight._part(part).values for part in self._parts]
        trained += [getattr(module, name) for name in self._extras]
        needs = (x.requires_grad, *(tensor.requires_grad for tensor in trained))
        self._last = self._steps[needs] if needs in self._steps else self._make(needs)
        return None if self._last is None else self._last.found()

    def _make(self, needs) -> QuickStep | None:
        module, family = self._module, self._module.family()
        slots = [slot for slot, need in zip(family.differentiable, needs) if need]
        step = None
        if self._able and any(needs):
            module.bind_gradients(slots)
            step = QuickStep(module, self._operator, family, slots, needs)
        self._steps[needs] = step
        return step


class QuickStep(Watched):
    """The call of a `SparseModule` and of its gradients' kernels, for the gradients in `slots`.

    `needs` says which of the input, the values of the parts, and the operator's extras require gradients.
    """

    def __init__(self, module, operator, family, slots, needs):
        self._module, self._operator, self._family, self._needs = module, operator, family, needs
        self._walked = {slot: family.walked(slot) for slot in slots}
        arrays = [*family.kernel.names, *(array for walked in self._walked.values() for array in walked)]
        self._arrays = list(dict.fromkeys(arrays))
        places = module.weight.bind(self._arrays)
        found = zip(self._arrays, places)
        self._copies = {array: place for array, place in found if array[1] and array[2] == VALUES}
        super().__init__(module, operator, family.kernel, places)

    def _bind(self):
        for part, name in self._copies.values():
            self._module.weight._part(part).make_room(name)
        return super()._bind()

    def serves(self, made: Bound) -> bool:
        of_part = self._module.weight._part
        return all(of_part(part).fills(name, made.copies[array]) for array, (part, name) in self._copies.items())

    def make(self, tensors) -> Bound:
        extras = len(tensors) - len(self._arrays)
        arrays, weight = dict(zip(self._arrays, tensors[extras:])), self._module.weight
        copies = {
            array: weight._part(part).bound_copy(name, arrays[array[0], "", VALUES])
            for array, (part, name) in self._copies.items()
        }
        call = self._module, self._operator, self._family, tensors[:extras], arrays
        made, self._owner = Bound(*call, self._walked, copies, self._needs), torch.empty(0)
        made.give_to(self._owner)
        return made

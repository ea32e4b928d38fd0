# SPDX-License-Identifier: Apache-2.0
"""A layer's call that autograd records, on tensors that were bound beforehand: forward and backward look up little."""

from __future__ import annotations

import math
import types

import torch

from ..capture.gradient import VALUES
from ..patterns.capturing import is_captured
from ..patterns.seen import trained_by_graph
from .copied import BoundCopy, moment
from .quick import Watched, _dispatch_modes
from .recorded import asked, may_record, require_pattern, revision


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

    def __call__(self, x):
        module = self._module
        if _dispatch_modes() or not may_record(x.device):
            return None
        try:
            weight = module.weight
            trained = [weight._part(part).values for part in self._parts]
            trained += [getattr(module, name) for name in self._extras]
            needs = (x.requires_grad, *(tensor.requires_grad for tensor in trained))
            step = self._steps[needs] if needs in self._steps else self._make(needs)
            made = None if step is None or (step.copies and is_captured(x.device)) else step.found()
            return None if made is None else Recorded.apply(made, x, *trained)
        except (AttributeError, KeyError, RuntimeError):
            return None  # the other way says what is wrong

    def _make(self, needs) -> QuickStep | None:
        module, family = self._module, self._module.family()
        slots = [slot for slot, need in zip(family.differentiable, needs) if need]
        step = None
        if self._able and any(needs):
            module.bind_gradients(slots)
            step = QuickStep(module, self._operator, family, slots)
        self._steps[needs] = step
        return step


class QuickStep(Watched):
    """The call of a `SparseModule` and of its gradients' kernels, for the gradients in `slots`."""

    def __init__(self, module, operator, family, slots):
        self._module, self._operator, self._family = module, operator, family
        self._walked = {slot: family.walked(slot) for slot in slots}
        arrays = [*family.kernel.names, *(array for walked in self._walked.values() for array in walked)]
        self._arrays = list(dict.fromkeys(arrays))
        places = module.weight.bind(self._arrays)
        found = zip(self._arrays, places)
        self.copies = {array: place for array, place in found if array[1] and array[2] == VALUES}
        super().__init__(module, operator, places)

    def _bind(self):
        for part, name in self.copies.values():
            self._module.weight._part(part).make_room(name)
        return super()._bind()

    def make(self, tensors) -> Bound:
        extras = len(tensors) - len(self._arrays)
        arrays, weight = dict(zip(self._arrays, tensors[extras:])), self._module.weight
        copies = {
            array: weight._part(part).bound_copy(name, arrays[array[0], "", VALUES])
            for array, (part, name) in self.copies.items()
        }
        return Bound(self._module, self._operator, self._family, tensors[:extras], arrays, self._walked, copies)


class Bound:
    """A kernel and those of its gradients on the tensors that they were bound to: `arrays` by part, text and name.

    `copies` are those of the arrays that are copies of values.
    """

    def __init__(self, module, operator, family, extras, arrays, walked, copies: dict[tuple, BoundCopy]):
        self._module, self._operator, self._family, self._arrays = module, operator, family, arrays
        self._gradients = {slot: (family.gradient(slot), [arrays[each] for each in walked[slot]]) for slot in walked}
        self._input, *self._slots = family.differentiable
        self._packed_shape = list(module.weight.shape)
        self.dropped, tail = operator.shape_rule(module)
        self.tail = len(tail)
        storage = [arrays[array] for array in family.kernel.names]
        kernel = family.kernel
        self._forward = kernel.bind([*extras, *storage], kernel.key, self._packed_shape, self.dropped, tail)
        self._of_input = None  # the bound call of the input's gradient, made by the first one
        self._run = kernel.bound()
        self.values = [storage[n] for n in family.own_values]
        self._copies = copies
        of = lambda names: [copies[array] for array in names if array in copies]
        self._read = {"": of(family.kernel.names), **{slot: of(names) for slot, names in walked.items()}}
        self.parts = module.weight._parts()

    def run(self, x):
        """What the kernel answers; the input may have any leading dimensions."""
        for copy in self._read[""]:
            copy.refresh()
        return self._run(x, self._forward.number)

    def is_captured(self, device) -> bool:
        """Is a CUDA graph made of this backward pass, and must hold the copies that it reads?"""
        if not self._copies or not is_captured(device):
            return False
        for values in self.values:
            if values.requires_grad:
                trained_by_graph(values)
        return True

    def require_pattern(self, then: int) -> None:
        """Raise `DataError` unless the weight has the pattern of the revision `then`, that of the forward pass."""
        require_pattern(self._module, self.parts, then)

    def gradients(self, x, shape, grad, needs, since: int) -> list:
        """The gradients of the input, of each part's values, and of the operator's extras; None where nobody asked.

        Copies of values are read that were made after the moment `since`, which is that of the forward pass.
        """
        count, own = len(self.values), len(shape) - self.dropped
        of_input = self._input_gradient(grad, shape[own:], since) if needs[0] else None
        if own != 1:
            rows = math.prod(shape[:own])
            grad = grad.reshape(rows, *grad.shape[grad.ndim - self.tail :])
            x = None if x is None else x.reshape(rows, *shape[own:])
        of_values = [self._values_gradient(n, x, grad, since) if needs[1 + n] else None for n in range(count)]
        return [of_input, *of_values, *(grad.sum(0) if need else None for need in needs[1 + count :])]

    def _input_gradient(self, grad, sizes, since: int):
        if self._of_input is None:
            gradient, arrays = self._gradients[self._input]
            self._of_input = gradient.kernel.bind(arrays, gradient.key, self._packed_shape, self.tail, sizes)
        for copy in self._read[self._input]:
            copy.refresh(since)
        return self._run(grad, self._of_input.number)

    def _values_gradient(self, n: int, x, grad, since: int):
        gradient, arrays = self._gradients[self._slots[n]]
        for copy in self._read[self._slots[n]]:
            copy.refresh(since)
        dense = {self._input: x, self._family.kernel.spec.output.name: grad}
        operands = [dense[operand.name] for operand in gradient.dense]
        return gradient.kernel.launch(operands, arrays, self.values[n].shape, gradient.key, self._packed_shape)

    def general(self, x, shape, values, grad, needs) -> list:
        """`gradients` by the way that may be differentiated again; `values` are those that autograd saved."""
        family, count = self._family, len(self.values)
        arrays = {**self._arrays, **dict(zip((family.kernel.names[n] for n in family.own_values), values))}
        arrays |= {array: copy.made(arrays[array[0], "", VALUES]) for array, copy in self._copies.items()}
        storage = [arrays[array] for array in family.kernel.names]
        dense, out = self._operator.inputs(self._module, grad.new_empty(shape) if x is None else x)
        first = len(dense)
        context = types.SimpleNamespace(
            key=family.key,
            packed_shape=self._packed_shape,
            shapes=[tuple(tensor.shape) for tensor in [*dense, *storage]],
            kept=[*range(x is not None), *range(first, first + len(storage))],
            saved_tensors=[*dense[: x is not None], *storage, *map(arrays.get, family.companions)],
        )
        of_array = [n in family.own_values and needs[1 + family.own_values.index(n)] for n in range(len(storage))]
        found, of_storage = family.differentiate(context, grad.reshape(out), [needs[0], *needs[1 + count :]], of_array)
        of_input = None if found[0] is None else found[0].reshape(shape)
        return [of_input, *(of_storage[n] for n in family.own_values), *found[1:]]


class Recorded(torch.autograd.Function):
    """`apply(bound, x, *trained)`: the values of the parts, then the operator's extras."""

    @staticmethod
    def forward(ctx, bound, x, *trained):
        needs = ctx.needs_input_grad[1:]
        ctx.bound, ctx.shape, ctx.revision, ctx.since = bound, x.shape, revision(bound.parts), moment()
        ctx.save_for_backward(x if any(needs[1 : 1 + len(bound.values)]) else None, *(bound.values if needs[0] else ()))
        return bound.run(x)

    @staticmethod
    def backward(ctx, grad):
        bound, needs = ctx.bound, asked(ctx, ctx.needs_input_grad[1:])
        bound.require_pattern(ctx.revision)
        x, *values = ctx.saved_tensors
        elsewhere = any(then.data_ptr() != now.data_ptr() for then, now in zip(values, bound.values))
        if not elsewhere and not torch.is_grad_enabled() and not bound.is_captured(grad.device):
            try:
                return None, *bound.gradients(x, ctx.shape, grad, needs, ctx.since)
            except RuntimeError:
                pass  # the general way says what is wrong
        return None, *bound.general(x, ctx.shape, values or bound.values, grad, needs)

# SPDX-License-Identifier: Apache-2.0
"""A layer's call that autograd records, on tensors that were bound beforehand: forward and backward look up little."""

from __future__ import annotations

import functools
import math
import types

import torch

from ..capture.gradient import VALUES
from ..patterns.capturing import is_captured
from ..patterns.seen import trained_by_graph
from .copied import BoundCopy, moment
from .quick import Watched, _dispatch_modes
from .recorded import Asked, may_record, require_pattern, revision


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
            return _recorded(made, x, *made.trained)
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
        super().__init__(module, operator, places)

    def _bind(self):
        for part, name in self._copies.values():
            self._module.weight._part(part).make_room(name)
        return super()._bind()

    def make(self, tensors) -> Bound:
        extras = len(tensors) - len(self._arrays)
        arrays, weight = dict(zip(self._arrays, tensors[extras:])), self._module.weight
        copies = {
            array: weight._part(part).bound_copy(name, arrays[array[0], "", VALUES])
            for array, (part, name) in self._copies.items()
        }
        call = self._module, self._operator, self._family, tensors[:extras], arrays
        return Bound(*call, self._walked, copies, self._needs)


class Bound:
    """A kernel and those of its gradients on the tensors that they were bound to: `arrays` by part, text and name.

    `copies` are those of the arrays that are copies of values. `trained` are the values of the parts and the
    operator's extras; `needs` says of the input and of them which require gradients.
    """

    def __init__(self, module, operator, family, extras, arrays, walked, copies: dict[tuple, BoundCopy], needs):
        self._module, self._operator, self._family, self._arrays = module, operator, family, arrays
        self._gradients = {slot: (family.gradient(slot), [arrays[each] for each in walked[slot]]) for slot in walked}
        self._input, *self._slots = family.differentiable
        self._packed_shape = list(module.weight.packed_shape)
        self._dropped, tail = operator.shape_rule(module)
        self._tail = len(tail)
        storage = [arrays[array] for array in family.kernel.names]
        kernel = family.kernel
        call = [*extras, *storage], kernel.key, self._packed_shape, self._dropped, tail
        self._bind = functools.partial(kernel.bind, *call)
        self._forward, self._fills = self._bind(), ()
        self._run, self._run_pair = kernel.bound(), kernel.bound_pair()
        self._of_input = None  # the bound call of the input's gradient, made by the first one
        self.values = [storage[n] for n in family.own_values]
        self._of_values: dict[int, tuple] = {}  # of each part's gradient, made by the first one
        self.trained, self.needs = (*self.values, *extras), needs
        self.needs_input, self.needs_values = needs[0], any(needs[1 : 1 + len(self.values)])
        self._copies, self.has_copies = copies, bool(copies)
        of = lambda names: [copies[array] for array in names if array in copies]
        self._read = {slot: of(names) for slot, names in walked.items()}
        self.parts, self.asked = module.weight._parts(), Asked()

    def serves(self, x) -> bool:
        """Do the same tensors as before require gradients?"""
        needs = self.needs
        if x.requires_grad != needs[0]:
            return False
        for n, tensor in enumerate(self.trained, 1):
            if tensor.requires_grad != needs[n]:
                return False
        return True

    def run(self, x):
        """What the kernel answers; the input may have any leading dimensions."""
        fills = [copy.fill() for copy in self._copies.values()]
        if not fills or None in fills:
            for copy in self._copies.values():
                copy.refresh()
            return self._run(x, self._forward.number)
        if fills != self._fills:
            self._forward, self._fills = self._bind(fills=fills), fills
        y = self._run(x, self._forward.number)
        for copy in self._copies.values():
            copy.filled()
        return y

    def holds_copies(self) -> bool:
        """Must a CUDA graph that is made of this backward pass hold copies of values of its own?"""
        if self.has_copies:
            for values in self.values:
                if values.requires_grad:
                    trained_by_graph(values)
        return self.has_copies

    def require_pattern(self, then: int) -> None:
        """Raise `DataError` unless the weight has the pattern of the revision `then`, that of the forward pass."""
        if revision(self.parts) != then:
            require_pattern(self._module, self.parts, then)

    def lies_elsewhere(self, saved) -> bool:
        """Are the values that autograd saved others than those that are bound?"""
        for then, now in zip(saved, self.values):
            if then.data_ptr() != now.data_ptr():
                return True
        return False

    def gradients(self, x, shape, grad, needs, since: int) -> list:
        """The gradients of the input, of each part's values, and of the operator's extras; None where nobody asked.

        Copies of values are read that were made after the moment `since`, which is that of the forward pass.
        """
        count, own = len(self.values), len(shape) - self._dropped
        grad = grad.contiguous()  # once for all that read it
        found = [self._input_gradient(grad, shape[own:], since) if needs[0] else None]
        for n in range(count):
            found.append(self._values_gradient(n, x, grad, since) if needs[1 + n] else None)
        if own != 1 and any(needs[1 + count :]):
            grad = grad.reshape(math.prod(shape[:own]), *grad.shape[grad.ndim - self._tail :])
        return found + [grad.sum(0) if need else None for need in needs[1 + count :]]

    def _input_gradient(self, grad, sizes, since: int):
        if self._of_input is None:
            gradient, arrays = self._gradients[self._input]
            self._of_input = gradient.kernel.bind(arrays, gradient.key, self._packed_shape, self._tail, sizes)
        for copy in self._read[self._input]:
            copy.refresh(since)
        return self._run(grad, self._of_input.number)

    def _values_gradient(self, n: int, x, grad, since: int):
        if n not in self._of_values:
            gradient, arrays = self._gradients[self._slots[n]]
            call = gradient.kernel.bind_pair(arrays, gradient.key, self._packed_shape, self.values[n].shape)
            self._of_values[n] = call, gradient.dense[0].name == self._input
        for copy in self._read[self._slots[n]]:
            copy.refresh(since)
        call, input_first = self._of_values[n]
        return self._run_pair(x, grad, call.number) if input_first else self._run_pair(grad, x, call.number)

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
        ctx.call = bound, x.shape, revision(bound.parts), moment()
        ctx.save_for_backward(x if bound.needs_values else None, *(bound.values if bound.needs_input else ()))
        return bound.run(x)

    @staticmethod
    def backward(ctx, grad):
        bound, shape, then, since = ctx.call
        captured = is_captured(grad.device)
        needs = bound.asked(ctx, bound.needs, anew=captured)
        bound.require_pattern(then)
        x, *values = ctx.saved_tensors
        quick = not torch.is_grad_enabled() and not bound.lies_elsewhere(values)
        if quick and not (captured and bound.holds_copies()):
            try:
                return None, *bound.gradients(x, shape, grad, needs, since)
            except RuntimeError:
                pass  # the general way says what is wrong
        return None, *bound.general(x, shape, values or bound.values, grad, needs)


# Without the layer of Python that binds default arguments and looks for transforms, of which there are none here.
_recorded = super(torch.autograd.Function, Recorded).apply

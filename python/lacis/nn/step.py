# SPDX-License-Identifier: Apache-2.0
"""A layer's call that autograd records, on tensors that were bound beforehand: forward and backward look up little."""

from __future__ import annotations

import math
import types

import torch

from .quick import Watched, _dispatch_modes


class QuickSteps:
    """Calls the kernels of one `SparseModule` where gradients are recorded, with all tensors but the input bound.

    A call answers None, and leaves it to the module's slower way, where a `QuickStep` cannot serve it: other than one
    dense operand beside the bias, copies of values that each recorded call makes, autocast, a mode or a transform that
    looks at every operator, or an input that the kernel refuses.
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
            made = None if step is None else step.found()
            return None if made is None else Recorded.apply(made, x, *trained)
        except (AttributeError, KeyError, RuntimeError):
            return None  # the other way says what is wrong

    def _make(self, needs) -> QuickStep | None:
        module, family = self._module, self._module.family()
        slots = [slot for slot, need in zip(family.differentiable, needs) if need]
        step = None
        if self._able and any(needs):
            module.bind_gradients(slots)
            if not family.copies(slots):
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
        super().__init__(module, operator, module.weight.bind(self._arrays))

    def make(self, tensors) -> Bound:
        extras = len(tensors) - len(self._arrays)
        return Bound(
            self._module,
            self._operator,
            self._family,
            tensors[:extras],
            dict(zip(self._arrays, tensors[extras:])),
            self._walked,
        )


class Bound:
    """A kernel and those of its gradients on the tensors that they were bound to: `arrays` by part, text and name."""

    def __init__(self, module, operator, family, extras, arrays, walked):
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

    def run(self, x):
        """What the kernel answers; the input may have any leading dimensions."""
        return self._run(x, self._forward.number)

    def gradients(self, x, shape, grad, needs) -> list:
        """The gradients of the input, of each part's values, and of the operator's extras; None where nobody asked."""
        count, own = len(self.values), len(shape) - self.dropped
        of_input = self._input_gradient(grad, shape[own:]) if needs[0] else None
        if own != 1:
            rows = math.prod(shape[:own])
            grad = grad.reshape(rows, *grad.shape[grad.ndim - self.tail :])
            x = None if x is None else x.reshape(rows, *shape[own:])
        of_values = [self._values_gradient(n, x, grad) if needs[1 + n] else None for n in range(count)]
        return [of_input, *of_values, *(grad.sum(0) if need else None for need in needs[1 + count :])]

    def _input_gradient(self, grad, sizes):
        if self._of_input is None:
            gradient, arrays = self._gradients[self._input]
            self._of_input = gradient.kernel.bind(arrays, gradient.key, self._packed_shape, self.tail, sizes)
        return self._run(grad, self._of_input.number)

    def _values_gradient(self, n: int, x, grad):
        gradient, arrays = self._gradients[self._slots[n]]
        dense = {self._input: x, self._family.kernel.spec.output.name: grad}
        operands = [dense[operand.name] for operand in gradient.dense]
        return gradient.kernel.launch(operands, arrays, self.values[n].shape, gradient.key, self._packed_shape)

    def general(self, x, shape, values, grad, needs) -> list:
        """`gradients` by the way that may be differentiated again; `values` are those that autograd saved."""
        family, count = self._family, len(self.values)
        arrays = {**self._arrays, **dict(zip((family.kernel.names[n] for n in family.own_values), values))}
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
        ctx.bound, ctx.shape = bound, x.shape
        ctx.save_for_backward(x if any(needs[1 : 1 + len(bound.values)]) else None, *(bound.values if needs[0] else ()))
        return bound.run(x)

    @staticmethod
    def backward(ctx, grad):
        bound, needs = ctx.bound, asked(ctx, ctx.needs_input_grad[1:])
        x, *values = ctx.saved_tensors
        elsewhere = any(then.data_ptr() != now.data_ptr() for then, now in zip(values, bound.values))
        if not elsewhere and not torch.is_grad_enabled():
            try:
                return None, *bound.gradients(x, ctx.shape, grad, needs)
            except RuntimeError:
                pass  # the general way says what is wrong
        return None, *bound.general(x, ctx.shape, values or bound.values, grad, needs)


def asked(ctx, needs) -> list[bool]:
    """Which of the gradients that the tensors need does this backward pass ask for?

    `torch.autograd.grad` and `backward(inputs=...)` name some tensors; what autograd noted in the forward pass is all.
    """
    if sum(needs) < 2:
        return needs
    return [need and _runs(node) for need, (node, _) in zip(needs, ctx.next_functions)]


def _runs(node) -> bool:
    try:
        return torch._C._will_engine_execute_node(node)
    except RuntimeError:  # torch cannot say it of a leaf that is asked for
        return True


def may_record(device: torch.device) -> bool:
    """Is this an eager call that no transform of torch looks into, outside of autocast regions?"""
    return not (torch._C._are_functorch_transforms_active() or torch.is_autocast_enabled(device.type))

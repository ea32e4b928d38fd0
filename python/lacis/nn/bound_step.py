# SPDX-License-Identifier: Apache-2.0
"""The kernels of a layer's call and of its gradients, bound to their tensors, and how autograd records the call."""

from __future__ import annotations

import functools
import math
import types
import weakref

import torch

from ..patterns.capturing import is_captured
from ..patterns.seen import is_trained_by_graph, trained_by_graph
from ..capture.gradient import VALUES
from .copied import BoundCopy, moment
from .recorded import Asked, require_pattern, revision


class Bound:
    """A kernel and those of its gradients on the tensors that they were bound to: `arrays` by part, step and name.

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
        self.copies, self.has_copies = copies, bool(copies)
        of = lambda names: [copies[array] for array in names if array in copies]
        self._read = {slot: of(names) for slot, names in walked.items()}
        self.parts, self.asked = module.weight._parts(), Asked()
        self._owner = lambda: None
        self._layer, self._looked_for_layer = None, False

    def give_to(self, owner: torch.Tensor) -> None:
        """Live as long as `owner`, an empty tensor, does: it, and graphs that were recorded, hold what is bound."""
        owner.bound, self._owner = self, weakref.ref(owner)

    def serves(self, x) -> bool:
        """Do the same tensors as before require gradients?"""
        needs = self.needs
        if x.requires_grad != needs[0]:
            return False
        for n, tensor in enumerate(self.trained, 1):
            if tensor.requires_grad != needs[n]:
                return False
        return True

    def recorded(self, x):
        """The product, which autograd records: by a node that runs without Python, if there is one for this torch.

        Copies of values that a CUDA graph trains may be old by the backward pass, which the node cannot know.
        """
        layer = self._layer if self._looked_for_layer else self._find_layer(x)
        if layer is None or (self.has_copies and any(map(is_trained_by_graph, self.values))):
            return _recorded(self, x, *self.trained)
        filling = self._fill()
        y = layer.run(x, self._owner(), layer.number, self._forward.number, revision(self.parts))
        for copy in filling:
            copy.filled()
        return y

    def _find_layer(self, x):
        """Binds the gradients' calls, which take the place of those that a pass in Python binds as it needs them."""
        count = len(self.values)
        if self.needs[0]:
            self._bind_input(x.shape[x.ndim - self._dropped :])
        for n in range(count):
            if self.needs[1 + n]:
                self._bind_values(n)
        of_values = [self._of_values.get(n, (self._forward, True)) for n in range(count)]
        counted = [part.counted for part in self.parts]
        call = self.trained, counted, self._of_input, of_values, self._tail, self.has_copies
        self._layer, self._looked_for_layer = self._family.kernel.bind_layer(*call), True
        return self._layer

    def run(self, x):
        """What the kernel answers; the input may have any leading dimensions."""
        filling = self._fill()
        y = self._run(x, self._forward.number)
        for copy in filling:
            copy.filled()
        return y

    def _fill(self):
        """Fills the copies; those that are answered are filled by the forward call, and `filled` after it."""
        copies = self.copies.values()
        fills = [copy.fill() for copy in copies]
        if not fills or None in fills:
            for copy in copies:
                copy.refresh()
            return ()
        if fills != self._fills:
            self._forward, self._fills = self._bind(fills=fills), fills
        return copies

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

    def _bind_input(self, sizes):
        if self._of_input is None:
            gradient, arrays = self._gradients[self._input]
            self._of_input = gradient.kernel.bind(arrays, gradient.key, self._packed_shape, self._tail, sizes)
        return self._of_input

    def _bind_values(self, n: int):
        if n not in self._of_values:
            gradient, arrays = self._gradients[self._slots[n]]
            call = gradient.kernel.bind_pair(arrays, gradient.key, self._packed_shape, self.values[n].shape)
            self._of_values[n] = call, gradient.dense[0].name == self._input
        return self._of_values[n]

    def _input_gradient(self, grad, sizes, since: int):
        call = self._bind_input(sizes)
        for copy in self._read[self._input]:
            copy.refresh(since)
        return self._run(grad, call.number)

    def _values_gradient(self, n: int, x, grad, since: int):
        call, input_first = self._bind_values(n)
        for copy in self._read[self._slots[n]]:
            copy.refresh(since)
        return self._run_pair(x, grad, call.number) if input_first else self._run_pair(grad, x, call.number)

    def otherwise(self, x, values, grad, shape, asked, then: int) -> list:
        """The gradients `asked` for, by number, where a node in C++ cannot make them by bound calls."""
        self.require_pattern(then)
        if not asked:
            return []
        if is_captured(grad.device):
            self.holds_copies()
        needs = [n in asked for n in range(1 + len(self.trained))]
        found = self.general(x, torch.Size(shape), values or self.values, grad, needs)
        return [found[n] for n in asked]

    def general(self, x, shape, values, grad, needs) -> list:
        """`gradients` by the way that may be differentiated again; `values` are those that autograd saved."""
        family, count = self._family, len(self.values)
        arrays = {**self._arrays, **dict(zip((family.kernel.names[n] for n in family.own_values), values))}
        arrays |= {array: copy.made(arrays[array[0], "", VALUES]) for array, copy in self.copies.items()}
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

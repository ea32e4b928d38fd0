# SPDX-License-Identifier: Apache-2.0
"""The gradients of kernels: which kernel answers for which operand, and which arrays it walks.

A product is linear in each operand. With what arrives for the output as one more operand, all kernels of a family are
the same form with another operand left out, so the gradients of a gradient are kernels of the family again.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import threading

import torch

from ..capture import KernelSpec
from ..capture.gradient import VALUES, gradient_specs
from ..emit import density
from ..errors import DataError, Error
from ..nn.recorded import takes_part
from ..patterns.derivation import Array
from ..patterns.transforms import is_transformed
from . import library
from .arrays import OWN_VALUES, in_part, out_of_part, stored_in_part, values_slot


class BackwardError(Error, NotImplementedError):
    """A gradient was asked of a kernel that has none."""


class Family:
    """A kernel, the kernels of its gradients, and the arrays that these walk beside the kernel's own.

    `key` is what the operator is called with: that of the kernel, or one more name for it where gradients are told what
    its own text does not say: `steps` (by slot), or how much is stored. Another layer with the same kernel may differ.
    """

    def __init__(self, key: str, kernel, load, steps):
        self.key = key
        self.kernel = kernel
        self.dense = [operand for operand in kernel.spec.arguments if operand.format is None]
        self.bias = len(self.dense) - 1 if kernel.spec.bias is not None else None
        self.companions: list[Array] = []
        self._load = load
        self._steps = steps
        specs = gradient_specs(self._differentiated())
        self.specs = {slot: dataclasses.replace(spec, steps=steps.get(slot, ())) for slot, spec in specs.items()}
        self._gradients: dict[str, Family] = {}
        self._casts: dict[torch.dtype, Family] = {}
        self._bound: set[tuple[str, ...]] = set()
        self._lock = threading.Lock()

    def _differentiated(self) -> KernelSpec:
        """What the kernels of gradients are made of. Where a kernel multiplies tiles, on tensor cores, its gradients do
        so, too: of one half type, so what arrives for a sum that was not rounded is rounded to the operands' dtype."""
        spec = self.kernel.spec
        is_wide = spec.dtype != spec.narrow
        has_tiles = is_wide and any(step.mnemonic == "tensorize" and step.kind is None for step in self.kernel.steps)
        return spec.rounded() if has_tiles else spec

    def as_taken(self, operands, storage) -> tuple[list, list]:
        """Dense operands and the kernel's arrays in the dtypes that the kernel takes."""
        spec = self.kernel.spec
        stored = spec.operands[spec.packed].dtype
        dense = [tensor.to(known.dtype) for tensor, known in zip(operands, self.dense)]
        return dense, [tensor.to(stored) if tensor.is_floating_point() else tensor for tensor in storage]

    @property
    def slots(self) -> tuple[str, ...]:
        """What it has gradients for: names of dense operands, and `values` or `part.values`."""
        return tuple(self.specs)

    @property
    def arrays(self) -> list[Array]:
        """What a call hands over, in order: the kernel's own arrays, then those of its gradients.

        It only grows at its end, so an earlier call's arrays are its beginning.
        """
        return [*self.kernel.names, *self.companions]

    @property
    def walks_copies(self) -> bool:
        """Does a kernel that was compiled for it walk a copy of the values, of which autograd knows nothing?"""
        return any(step and name == VALUES for _, step, name in self.arrays)

    @functools.cached_property
    def own_values(self) -> list[int]:
        """Where the values are among the kernel's arrays, one place for each part that has them there."""
        return [n for n, array in enumerate(self.kernel.names) if values_slot(array)]

    @property
    def value_parts(self) -> list[str]:
        """The parts whose values the kernel reads where they are stored."""
        return [self.kernel.names[n][0] for n in self.own_values]

    @functools.cached_property
    def differentiable(self) -> list[str]:
        """The slots of the dense operands but the bias, then those of `own_values`."""
        dense = [operand.name for n, operand in enumerate(self.dense) if n != self.bias]
        return dense + [values_slot(self.kernel.names[n]) for n in self.own_values]

    def walked(self, slot: str) -> list[Array]:
        """The arrays that the kernel of a gradient walks, in its order, by their names in the sum."""
        return [in_part(array, slot) for array in self.gradient(slot).kernel.names]

    def bind(self, slots) -> Family:
        """Compile the kernels of these gradients and note the arrays that they walk, in one order in every process."""
        if (asked := tuple(slots)) in self._bound:
            return self
        for slot in sorted(asked, key=self.slots.index):
            walked = dict.fromkeys([*self.walked(slot), *stored_in_part(self.specs[slot], slot)])
            with self._lock:
                known = set(self.arrays)
                for array in walked:
                    if array not in known and (array[1] or array[2] != VALUES):
                        self.companions.append(array)
        self._bound.add(asked)
        return self

    def gradient(self, slot: str) -> Family:
        """The kernel of one gradient, compiled when first asked for."""
        if slot not in self._gradients:
            kernel = self._load(self.specs[slot])
            copies = any(step and name == VALUES for _, step, name in kernel.names)
            if copies and self.kernel.spec.sampled:  # its values are what arrives, of which nobody has a copy
                kernel = self._load(self.specs[slot], plain=True)
            self._gradients[slot] = family(kernel, self._load)
        return self._gradients[slot]

    def cast(self, dtype: torch.dtype, storage, companions) -> tuple[Family, list, list]:
        """The family of the same kernel in another dtype, and the arrays of a call in the order that it takes them."""
        arrays = dict(zip(self.arrays, [*storage, *companions]))
        if dtype not in self._casts:
            spec = self.kernel.spec.with_dtype(dtype)
            kernel = self._load(spec)
            if not set(self.arrays).issuperset(kernel.names):  # it walks what the call does not bring
                kernel = self._load(spec, plain=True)
            self._casts[dtype] = family(kernel, self._load, self._steps)
        other = self._casts[dtype]
        if len(other._gradients) < len(self._gradients):
            other.bind(self._gradients)
        pick = lambda names: [arrays[name] for name in names if name in arrays]
        return other, pick(other.kernel.names), pick(other.companions)

    def compiled(self) -> list[Family]:
        """This family and all that were compiled for it."""
        others = [*self._gradients.values(), *self._casts.values()]
        return [self, *(found for other in others for found in (other, *other._gradients.values()))]

    def differentiate(self, context, grad, needs_operands, needs_storage) -> tuple[list, list]:
        """See `differentiate`; `context` is what `keep` fills."""
        return differentiate(context, grad, needs_operands, needs_storage)

    def asked(self, operands, storage) -> list[str]:
        """The slots of a call whose tensors take part in autograd."""
        slots = [o.name for n, o in enumerate(self.dense) if n != self.bias and takes_part(operands[n])]
        return slots + [s for name, t in zip(self.kernel.names, storage) if (s := values_slot(name)) and takes_part(t)]


_families: dict[str, Family] = {}


def family(kernel, load, steps=None) -> Family:
    """The family of a kernel, one a key in the process; `load(spec)` compiles on the same target and device.

    `load(spec, plain=True)` leaves tensor cores, and the structures that they walk, aside.
    """
    steps = {slot: tuple(each) for slot, each in (steps or {}).items() if each}
    told = [f"{slot} {step.text()}" for slot in sorted(steps) for step in steps[slot]]
    told += [word for words in density(kernel.spec).values() for word in words if word not in kernel.text]
    key = kernel.key
    if told:
        key = hashlib.sha256("\n".join(["family", key, *told]).encode()).hexdigest()
    found = _families.get(key)
    if found is None:
        if told:
            kernel.name_also(key)
        found = _families.setdefault(key, Family(key, kernel, load, steps))
    return found


def find_family(key: str) -> Family | None:
    """The family of a kernel that this process compiled."""
    return _families.get(key)


def setup_context(ctx, inputs, output) -> None:
    """`keep` for a call of the operator."""
    operands, storage, _, key, packed_shape, companions = inputs
    keep(ctx, [*operands, *storage], companions, key, packed_shape, ctx.needs_input_grad)


def keep(ctx, tensors, companions, key: str, packed_shape, needs) -> None:
    """Keep what the gradients that are asked for multiply, and no more; `needs` says by tensor which are."""
    found = find_family(key)
    bias = found.bias if found else None
    asked = [n for n in range(len(tensors)) if needs[n] and n != bias]
    ctx.kept = [n for n in range(len(tensors)) if n != bias and any(n != other for other in asked)]
    ctx.key, ctx.packed_shape = key, packed_shape
    ctx.shapes = [tuple(tensor.shape) for tensor in tensors]
    ctx.save_for_backward(*(tensors[n] for n in ctx.kept), *(companions if asked else ()))


def backward(ctx, grad):
    """`differentiate` for a call of the operator."""
    needs_operands, needs_storage, *rest = ctx.needs_input_grad
    found = differentiate(ctx, grad, needs_operands, needs_storage)
    return *found, *([None] * len(n) if isinstance(n, list) else None for n in rest)


def differentiate(ctx, grad, needs_operands, needs_storage) -> tuple[list, list]:
    """Gradients of the dense operands and of the values, by the kernels of the family; None where nobody asked."""
    found = find_family(ctx.key)
    if found is None:
        raise BackwardError(
            f"kernel {ctx.key[:12]} was loaded without the kernels of its gradients; build the model in this process "
            "to train it"
        )
    call = _Call(found, ctx, grad)
    of_operands = [call.of_operand(n) if need else None for n, need in enumerate(needs_operands)]
    return of_operands, [call.of_array(n) if need else None for n, need in enumerate(needs_storage)]


def _require(arrays, names, key: str) -> None:
    """Raise `DataError` unless the call brought every array that a gradient walks."""
    missing = [name for name in names if arrays.get(name) is None]
    if missing:
        part, step, name = missing[0]
        whose = f"the {step}" if step else "the packed operand"
        raise DataError(
            f"einsum: a gradient of kernel {key[:12]} walks '{part + '.' if part else ''}{name}' of {whose}, which the "
            "call did not bring in 'companions'; lacis.einsum and built modules do"
        )


class _Call:
    """A call that is differentiated: its tensors by slot and by array, and what arrived for its output."""

    def __init__(self, family: Family, ctx, grad):
        self.family = family
        self.shapes = ctx.shapes
        self.packed_shape = ctx.packed_shape
        self.grad = grad
        count, saved = len(ctx.kept), ctx.saved_tensors
        tensors = dict(zip(ctx.kept, saved))
        first = len(family.dense)
        self.dense = {operand.name: tensors.get(n) for n, operand in enumerate(family.dense)}
        self.arrays = {array: tensors.get(first + n) for n, array in enumerate(family.kernel.names)}
        self.arrays.update(zip(getattr(ctx, "companions", family.companions), saved[count:]))
        self.output = family.kernel.spec.output
        self.sampled = family.kernel.spec.sampled
        if not self.sampled:
            self.dense[self.output.name] = grad

    def _arriving(self):
        """The arrays of a sampled output, with what arrives for it as values; padding depends on nothing."""
        grad, valid = self.grad.contiguous(), self.arrays.get(("", "", "valid"))
        grad = torch.where(valid, grad, 0) if valid is not None and valid.numel() else grad
        own = self.arrays.get(OWN_VALUES)
        return {**self.arrays, OWN_VALUES: grad if own is None else grad * own}

    def of_operand(self, n: int):
        """The gradient of dense operand `n`; along letters that only it has, the same value again and again."""
        operand = self.family.dense[n]
        if n == self.family.bias:
            axes = [axis for axis, letter in enumerate(self.output.indices) if letter not in operand.indices]
            return (self.grad.sum(axes) if axes else self.grad).to(operand.dtype)
        gradient = self.family.gradient(operand.name)
        kept = gradient.kernel.spec.output.indices
        sizes = dict(zip(operand.indices, self.shapes[n]))
        found = self._run(
            gradient, self._arriving() if self.sampled else self.arrays, [sizes[letter] for letter in kept]
        )
        if kept == operand.indices:
            return found
        return found.reshape([sizes[i] if i in kept else 1 for i in operand.indices]).expand(self.shapes[n])

    def of_array(self, n: int):
        """The gradient of the values in storage array `n`."""
        slot = values_slot(self.family.kernel.names[n])
        arrays = {out_of_part(name, slot): tensor for name, tensor in self.arrays.items()}
        found = self._run(self.family.gradient(slot), arrays, self.shapes[len(self.family.dense) + n])
        return (found * self.grad).to(self.family.kernel.spec.narrow) if self.sampled else found

    def _run(self, gradient: Family, arrays, shape):
        operands, names = [self.dense[operand.name] for operand in gradient.dense], gradient.kernel.names
        _require(arrays, names, self.family.key)
        storage, companions = [arrays[name] for name in names], []
        if self.output.dtype != self.family.kernel.spec.narrow:
            operands, storage = gradient.as_taken(operands, storage)
        if is_transformed():
            arrays = {**arrays, **dict(zip(names, storage))}
            return library.transformed().run(gradient, operands, arrays, shape, self.packed_shape)
        if torch.is_grad_enabled():  # someone may differentiate again
            gradient.bind(gradient.asked(operands, storage))
            _require(arrays, gradient.companions, self.family.key)
            companions = [arrays[name] for name in gradient.companions]
        return library.einsum(operands, storage, list(shape), gradient.key, self.packed_shape, companions)

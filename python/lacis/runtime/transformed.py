# SPDX-License-Identifier: Apache-2.0
"""Calls that transforms of `torch.func` look into, and forward mode: gradients, tangents and batches of kernels.

A product is linear in each operand, so a tangent takes its operand's place in the same kernel. A batch becomes one
more stretch of a letter that only dense operands have; where there is no such letter the kernel runs once a sample.
"""

from __future__ import annotations

import dataclasses
import types

import torch

from ..capture.gradient import VALUES
from ..errors import DataError
from ..nn.recorded import entries_alone
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.derivation import Array
from . import autocast, library
from .gradients import BackwardError, Family, find_family


@dataclasses.dataclass(frozen=True)
class TransformedCall:
    """What a call says beside its tensors: dense operands, the kernel's arrays, arrays that its gradients may walk.

    `arrays` names all of the latter two, as far as the kernel is known in this process; `storage` counts the former.
    """

    key: str
    shape: tuple[int, ...]
    packed_shape: tuple[int, ...]
    operands: int
    storage: int
    arrays: tuple[Array, ...]

    @property
    def count(self) -> int:
        """How many tensors the kernel takes."""
        return self.operands + self.storage

    def family(self) -> Family:
        """The kernel with those of its gradients; raises `BackwardError` where it has none."""
        found = find_family(self.key)
        if found is None:
            raise BackwardError(
                f"kernel {self.key[:12]} was loaded without the kernels of its gradients; build the model in this "
                "process to differentiate it"
            )
        if found.kernel.spec.semiring != "plus_times":
            raise BackwardError(f"einsum: semiring '{found.kernel.spec.semiring}' is forward only, it has no gradient")
        return found

    def __call__(self, *tensors) -> torch.Tensor:
        return Transformed.apply(self, *tensors)


def einsum(operands, storage, shape, key: str, packed_shape, companions) -> torch.Tensor:
    """As `library.einsum`. An autocast region casts here, for no transform looks into the operator."""
    device = operands[0].device.type if operands else storage[0].device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        found, key, storage, companions = autocast.family_of(dtype, key, storage, companions)
        operands, storage = autocast.cast_all(operands, storage, dtype, found)
    found = find_family(key)
    arrays = dict(zip(found.arrays, [*storage, *companions])) if found else {}
    with autocast.outside(device):
        if found:
            return run(found, operands, arrays, shape, packed_shape)
        call = TransformedCall(key, tuple(shape), tuple(packed_shape), len(operands), len(storage), ())
        return call(*operands, *storage)


def run(family: Family, operands, arrays: dict[Array, torch.Tensor], shape, packed_shape) -> torch.Tensor:
    """A kernel on the arrays by name; those that it does not take are there for its gradients.

    Values are none of these: the gradient of a gradient would take them for its own.
    """
    own = family.kernel.names
    others = (name for name, tensor in arrays.items() if tensor is not None and name not in own)
    names = (*own, *(name for name in others if name[1] or name[2] != VALUES))
    call = TransformedCall(family.key, tuple(shape), tuple(packed_shape), len(operands), len(own), names)
    return call(*operands, *(arrays[name] for name in names))


def of_entries(operand: PackedTensor | Pattern) -> PackedTensor | Pattern:
    """The same operand, which depends on the values of its entries alone."""
    if isinstance(operand, Pattern):
        return operand
    known = operand.values_by_part.items()
    return PackedTensor(operand.pattern, {n: entries_alone(v, operand.pattern.part(n).valid) for n, v in known})


class Transformed(torch.autograd.Function):
    """`apply(call, *tensors)`: dense operands, the kernel's arrays, the other ones."""

    @staticmethod
    def forward(call, *tensors):
        sizes = [len(call.shape), *call.shape, *call.packed_shape]
        with torch.no_grad():
            return library.inference()(list(tensors[: call.count]), sizes, call.key)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.call, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx, grad):
        call, needs, tensors = ctx.call, ctx.needs_input_grad[1:], ctx.saved_tensors
        context = types.SimpleNamespace(
            key=call.key,
            packed_shape=list(call.packed_shape),
            shapes=[tuple(tensor.shape) for tensor in tensors],
            kept=range(call.count),
            companions=call.arrays[call.storage :],
            saved_tensors=tensors,
        )
        found = call.family().differentiate(context, grad, needs[: call.operands], needs[call.operands : call.count])
        return None, *found[0], *found[1], *([None] * (len(tensors) - call.count))

    @staticmethod
    def jvp(ctx, _, *tangents):
        call, tensors = ctx.call, ctx.saved_tensors
        family = call.family()
        bias, values = family.bias, [call.operands + n for n in family.own_values]
        without = list(tensors)
        if bias is not None:
            without[bias] = torch.zeros_like(tensors[bias])
        total = torch.zeros(call.shape, dtype=library.output_dtype(call.key, tensors[0]), device=tensors[0].device)
        for together in [*([n] for n in range(call.operands) if n != bias), values]:  # parts of a sum add up
            moved = {n: tangents[n] for n in together if tangents[n] is not None}
            if moved:
                still = {n: torch.zeros_like(tensors[n]) for n in together if n not in moved}
                total = total + call(*({**dict(enumerate(without)), **still, **moved}).values())
        if bias is None or tangents[bias] is None:
            return total
        return total + _spread(tangents[bias], family.dense[bias].indices, family.kernel.spec.output.indices)

    @staticmethod
    def vmap(info, in_dims, call, *tensors):
        dims = in_dims[1:]
        _require_whole_patterns(call, dims)
        letter = _free_letter(call, dims)
        if letter is not None:
            return _folded(info.batch_size, dims, call, tensors, letter)
        results = []
        for n in range(info.batch_size):
            each = [t if dim is None else t.select(dim, n) for t, dim in zip(tensors, dims)]
            results.append(call(*each))
        if results:
            return torch.stack(results), 0
        dtype = library.output_dtype(call.key, tensors[0])
        return torch.empty((0, *call.shape), dtype=dtype, device=tensors[0].device), 0


def _spread(tensor, letters, output):
    """A tensor with these letters as one that adds to the output."""
    order = sorted(range(len(letters)), key=lambda n: output.index(letters[n]))
    sizes = dict(zip(letters, tensor.shape))
    return tensor.permute(order).reshape([sizes.get(letter, 1) for letter in output])


def _require_whole_patterns(call: TransformedCall, dims) -> None:
    """Raise `DataError` where some arrays of a pattern are batched and others, of one pattern, are not."""
    found = dict(zip(call.arrays, dims[call.operands :]))
    dims_of = {array: dim for array, dim in found.items() if array[2] not in (VALUES, "valid")}
    single = [array for array, dim in dims_of.items() if dim is None]
    if 0 < len(single) < len(dims_of):
        part, _, name = single[0]
        raise DataError(
            f"vmap: the patterns of several weights are stacked, '{part + '.' if part else ''}{name}' is that of one; "
            "call .train() of all models before torch.func.stack_module_state, so that each has all its arrays"
        )


def _free_letter(call: TransformedCall, dims) -> str | None:
    """A letter of the output that no packed operand has and every batched tensor has; None where there is none."""
    family = find_family(call.key)
    if family is None or any(dim is not None for dim in dims[call.operands :]):
        return None
    spec, letters = family.kernel.spec, None
    for operand, dim in zip(family.dense, dims):
        if dim is not None:
            letters = set(operand.indices) if letters is None else letters & set(operand.indices)
    own = spec.operands[spec.packed].indices
    return next((letter for letter in spec.output.indices if letter in (letters or ()) and letter not in own), None)


def _folded(size: int, dims, call: TransformedCall, tensors, letter: str):
    """One call whose `letter` runs over all samples, sample by sample."""
    family, given = find_family(call.key), list(tensors)
    spec = family.kernel.spec
    for n, (operand, dim) in enumerate(zip(family.dense, dims)):
        if letter not in operand.indices:
            continue
        axis = operand.indices.index(letter)
        if dim is None:
            shape = tensors[n].shape
            spread = tensors[n].unsqueeze(axis).expand(*shape[:axis], size, *shape[axis:])
        else:
            spread = tensors[n].movedim(dim, axis)
        given[n] = _merged(spread, axis)
    axis, shape = spec.output.indices.index(letter), list(call.shape)
    longer = dataclasses.replace(call, shape=(*shape[:axis], size * shape[axis], *shape[axis + 1 :]))
    return longer(*given).reshape(*shape[:axis], size, *shape[axis:]), axis


def _merged(tensor, axis: int):
    """Two neighbouring axes as one, also where they are empty."""
    shape = tensor.shape
    return tensor.reshape(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])

# SPDX-License-Identifier: Apache-2.0
"""Einsums in torch's own operators: what `target="eager"` runs, and what kernels are compared with."""

from __future__ import annotations

import math

import torch

from ..capture import Epilogue, find_semiring, wide
from ..packing import PackedTensor
from ..packing.stored_points import Places, stored_einsum
from ..patterns import Pattern


_CHUNK = 256
_SERIAL = 16384  # torch sums as many elements in one thread


def reference(call):
    """The result of a `Call`, without kernels.

    >>> from lacis.runtime.call import Call
    >>> p = Pattern.from_mask(torch.tensor([[True, False], [False, True]]), "(i, j) -> (i : dense, j : compressed)")
    >>> reference(Call("ij,i,j->ij", [p, torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])])).values
    tensor([ 3., 10.])
    """
    if call.sampled:
        total = _sampled(call)
    elif call.semiring != "plus_times":
        total = _over_entries(call)
    else:
        dense = [o.to_dense() if n == call.packed else o for n, o in enumerate(call.operands)]
        rounds = call.epilogue is None and call.out_dtype == call.dtype
        dense = dense if rounds else [o.to(wide(o.dtype)) for o in dense]
        with torch.autocast(call.device.type, enabled=rounds and torch.is_autocast_enabled(call.device.type)):
            total = stored_einsum(call.terms, call.output, dense, call.packed, call.pattern)
    return finish(call, total)


def finish(call, total):
    """The epilogue of a call on its sum, in torch's own operators; rounded to the dtype of the result."""
    if not call.sampled:
        total = total if call.epilogue is None else _applied(call.epilogue, total, call.output, call.terms[call.packed])
        return total.to(call.out_dtype)
    if call.epilogue is None:
        return total
    values = {}
    for part, stored in total.values_by_part.items():
        entries = _Entries(call, part)
        at_entries = stored.reshape(-1)[entries.at]
        values[part] = entries.scatter(_applied(entries.epilogue(call), at_entries, ("e",), ("e",)), call.out_dtype)
    return call.packed_result(values)


def _applied(epilogue, total, output, packed) -> torch.Tensor:
    return epilogue.apply(total.to(wide(total.dtype)), output, packed)


class _Entries(Places):
    """The products at the entries of one part: a tensor with one axis for the entries, one for each other letter."""

    def __init__(self, call, part: str):
        self.part = part
        self.structure = call.pattern.part(part)
        axes, valid = self.structure.coordinates()
        self.at = valid.nonzero().reshape(-1)
        super().__init__({letter: axis[self.at] for letter, axis in zip(call.terms[call.packed], axes)}, call.terms)

    def scatter(self, values: torch.Tensor, dtype) -> torch.Tensor:
        """The stored values with these at the entries, and 0 in padding."""
        shape = self.structure.values_shape
        flat = torch.zeros(math.prod(shape), dtype=dtype, device=values.device)
        return flat.index_put((self.at,), values.to(dtype)).reshape(shape)

    def reduced(self, call) -> torch.Tensor:
        """What the operands combine to, reduced over the letters that neither the entries nor the output have."""
        semiring = find_semiring(call.semiring, call.dtype)
        total = None
        for n, (term, operand) in enumerate(zip(call.terms, call.operands)):
            if isinstance(operand, Pattern):
                continue
            if n == call.packed:
                stored = operand.values_by_part[self.part]
                value = stored.reshape(-1)[self.at].reshape([-1] + [1] * len(self.others))
            else:
                value = self.gather(operand, term)
            value = value.to(wide(value.dtype))
            total = value if total is None else semiring.combine(total, value)
        total = total.expand([len(self.at), *(call.sizes[letter] for letter in self.others)])
        total = total.to(torch.uint8) if total.dtype == torch.bool else total
        return _reduced(total, [1 + n for n, letter in enumerate(self.others) if letter not in call.output], semiring)

    def epilogue(self, call) -> Epilogue:
        """The epilogue whose tensors are those of the call's at the entries."""
        epilogue, axes = call.epilogue, call.epilogue.axes(call.output, call.terms[call.packed])
        gather = lambda tensor, term: (
            None if tensor is None else self.gather(tensor, term)[(...,) + (0,) * len(self.others)]
        )
        scale = epilogue.scale
        if isinstance(scale, torch.Tensor) and scale.ndim:
            scale = gather(scale, axes)
        return Epilogue(gather(epilogue.bias, axes), epilogue.activation, scale, gather(epilogue.residual, call.output))


def _reduced(tensor: torch.Tensor, dims: list[int], semiring) -> torch.Tensor:
    """Reduced over some axes; where one is empty, the semiring's zero."""
    if not dims:
        return tensor
    if semiring.reduce == "sum":
        return tensor.sum(dims)
    kept = [size for n, size in enumerate(tensor.shape) if n not in dims]
    if math.prod(tensor.shape[d] for d in dims) == 0:
        return torch.full(kept, semiring.zero, dtype=tensor.dtype, device=tensor.device)
    return tensor.amax(dims)


def total(partial: torch.Tensor, semiring: str) -> torch.Tensor:
    """The sum of a vector, in an order that the number of threads does not change."""
    if semiring != "plus_times":
        found = find_semiring(semiring, partial.dtype)
        return _reduced(partial.to(torch.uint8) if partial.dtype == torch.bool else partial, [0], found)
    while partial.numel() > _SERIAL:
        whole = partial.numel() // _CHUNK * _CHUNK
        partial = torch.cat([partial[:whole].reshape(-1, _CHUNK).sum(1), partial[whole:]])
    return partial.sum()


def _over_entries(call) -> torch.Tensor:
    """A dense output; the semiring's zero where nothing is stored."""
    sizes, semiring = call.sizes, find_semiring(call.semiring, call.dtype)
    own = [letter for letter in call.output if letter in call.terms[call.packed]]
    total = None
    for part in call.pattern.parts:
        entries = _Entries(call, part)
        values = entries.reduced(call)
        others = [letter for letter in entries.others if letter in call.output]
        if total is None:
            shape = [math.prod(sizes[letter] for letter in own), *(sizes[letter] for letter in others)]
            total = torch.full(shape, semiring.zero, dtype=values.dtype, device=values.device)
        row = torch.zeros_like(entries.at)
        for letter in own:
            row = row * sizes[letter] + entries.coordinates[letter]
        index = row.reshape([-1] + [1] * len(others)).expand_as(values)
        total = total.scatter_reduce(0, index, values, semiring.reduce)
    letters = [*own, *others]
    return total.reshape([sizes[letter] for letter in letters]).permute(
        [letters.index(letter) for letter in call.output]
    )


def _sampled(call) -> PackedTensor:
    values = {}
    for part in call.pattern.parts:
        entries = _Entries(call, part)
        values[part] = entries.scatter(entries.reduced(call), call.out_dtype)
    return call.packed_result(values)

# SPDX-License-Identifier: Apache-2.0
"""`torch.einsum` with a weight that has entries: what a dense operand holds elsewhere is multiplied with nothing."""

from __future__ import annotations

import math

import torch

from ..patterns import Pattern
from ..patterns.transforms import is_transformed

_ROOM = 2**22  # products that are held at once where they are made entry by entry


class Places:
    """The entries of an operand by their letters, and the letters that it has not."""

    def __init__(self, coordinates: dict[str, torch.Tensor], terms):
        self.coordinates = coordinates
        letters = dict.fromkeys(letter for term in terms for letter in term)
        self.others = [letter for letter in letters if letter not in coordinates]

    def gather(self, tensor: torch.Tensor, term) -> torch.Tensor:
        """A dense tensor at the entries: [entries or 1, size or 1 of each other letter]."""
        mine = [letter for letter in term if letter in self.coordinates]
        rest = [letter for letter in self.others if letter in term]
        tensor = tensor.permute([term.index(letter) for letter in [*mine, *rest]])
        found = tensor[tuple(self.coordinates[letter] for letter in mine)] if mine else tensor[None]
        sizes = iter(found.shape[1:])
        return found.reshape([found.shape[0], *(next(sizes) if letter in rest else 1 for letter in self.others)])


def stored_einsum(terms, output, operands, packed: int, pattern: Pattern) -> torch.Tensor:
    """The product of dense tensors, of which operand `packed` has the entries of `pattern` and is 0 elsewhere.

    NaN and infinity reach the outputs of entries alone, forward and in gradients. Where a transform of torch or the
    compiler looks on, or under autocast, it is `torch.einsum`.

    >>> p = Pattern.from_mask(torch.eye(2, dtype=torch.bool), "(i, j) -> (i : dense, j : compressed)")
    >>> stored_einsum([("i", "j"), ("j",)], ("i",), [torch.eye(2), torch.tensor([torch.nan, 5.0])], 0, p)
    tensor([nan, 5.])
    """
    if is_looked_into(operands[packed].device) or not operands[packed].is_floating_point():
        return torch.einsum(_text(terms, output), *operands)
    return _StoredEinsum.apply(terms, output, packed, pattern, *operands)


def is_looked_into(device: torch.device) -> bool:
    """Does a transform of torch or the compiler look into this call, or does autocast change it?"""
    return torch.compiler.is_compiling() or is_transformed() or torch.is_autocast_enabled(device.type)


def _text(terms, output) -> str:
    return f"{','.join(''.join(term) for term in terms)}->{''.join(output)}"


class _StoredEinsum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, terms, output, packed, pattern, *operands):
        ctx.save_for_backward(*operands)
        ctx.said = terms, output, packed, pattern
        result = torch.einsum(_text(terms, output), *operands)
        if bool(result.isfinite().all()):  # else it may be 0 times what is nowhere stored
            return result
        return _by_entries(terms, output, operands, packed, pattern).to(result.dtype)

    @staticmethod
    def backward(ctx, arrived):
        terms, output, packed, pattern = ctx.said
        operands = ctx.saved_tensors
        gradients = [None] * len(operands)
        for n in (n for n in range(len(operands)) if ctx.needs_input_grad[4 + n]):
            mine = [output if m == n else term for m, term in enumerate(terms)]
            tensors = [arrived if m == n else operand for m, operand in enumerate(operands)]
            known = {letter for term in mine for letter in term}
            kept = tuple(letter for letter in terms[n] if letter in known)
            if n == packed:
                found = torch.einsum(_text(mine, kept), *tensors)
            else:
                found = stored_einsum(mine, kept, tensors, packed, pattern)
            for axis, letter in enumerate(terms[n]):  # the gradient is the same along letters that nothing else has
                found = found if letter in known else found.unsqueeze(axis)
            gradients[n] = found.expand_as(operands[n])
        return None, None, None, None, *gradients


def _by_entries(terms, output, operands, packed: int, pattern: Pattern) -> torch.Tensor:
    """The sum over entries, some at a time."""
    sizes = {letter: size for term, each in zip(terms, operands) for letter, size in zip(term, each.shape)}
    own = [letter for letter in output if letter in terms[packed]]
    others = [letter for letter in Places(dict.fromkeys(terms[packed]), terms).others if letter in output]
    wide = torch.promote_types(operands[packed].dtype, torch.float32)
    rows = math.prod(sizes[letter] for letter in own)
    total = operands[packed].new_zeros([rows, *(sizes[letter] for letter in others)], dtype=wide)
    axes = pattern.to_mask().nonzero(as_tuple=True)
    free = math.prod(size for letter, size in sizes.items() if letter not in terms[packed])
    step = max(_ROOM // max(free, 1), 1)
    for start in range(0, len(axes[0]), step):
        places = Places(dict(zip(terms[packed], (axis[start : start + step] for axis in axes))), terms)
        product = None
        for term, operand in zip(terms, operands):
            factor = places.gather(operand, term).to(wide)
            product = factor if product is None else product * factor
        summed = [1 + n for n, letter in enumerate(places.others) if letter not in output]
        product = product.sum(summed) if summed else product
        row = torch.zeros_like(axes[0][start : start + step])
        for letter in own:
            row = row * sizes[letter] + places.coordinates[letter]
        total.index_add_(0, row, product.expand(len(row), *total.shape[1:]))
    letters = [*own, *others]
    shaped = total.reshape([sizes[letter] for letter in letters])
    return shaped.permute([letters.index(letter) for letter in output])

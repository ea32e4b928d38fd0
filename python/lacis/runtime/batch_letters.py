# SPDX-License-Identifier: Apache-2.0
"""Batch letters of a sampled product: heads and batches that share one pattern."""

from __future__ import annotations

import torch

from ..capture import packed_operand, parse_statement
from ..errors import DataError
from ..patterns import Pattern


def under_batch_letters(expression: str, operands) -> tuple[str, tuple]:
    """An einsum whose output has letters that its pattern has not, on the pattern below a batch with these letters.

    >>> p = Pattern.from_mask(torch.tensor([[True, False], [True, True]]), "(i, j) -> (i : dense, j : compressed)")
    >>> q, k = torch.ones(3, 2, 5), torch.ones(3, 2, 5)
    >>> said, (pattern, *_) = under_batch_letters("ij,hid,hjd->hij", (p, q, k))
    >>> said, list(pattern.shape)
    ('hij,hid,hjd->hij', [3, 2, 2])

    Other einsums come back as they are.
    """
    terms, output = parse_statement(expression)
    if len(terms) != len(operands):
        raise DataError(f"einsum: '{expression}' names {len(terms)} operands, {len(operands)} are given")
    packed = packed_operand(operands)
    pattern, own = operands[packed], terms[packed]
    batch = tuple(letter for letter in output if letter not in own)
    if not isinstance(pattern, Pattern) or not batch or not set(own) <= set(output):
        return expression, operands
    sizes = {
        letter: size
        for term, operand in zip(terms, operands)
        if isinstance(operand, torch.Tensor) and operand.ndim == len(term)
        for letter, size in zip(term, operand.shape)
    }
    missing = [letter for letter in batch if letter not in sizes]
    if missing:  # the check of the operands says what is wrong
        return expression, operands
    words = ["".join(term) for term in terms]
    words[packed] = "".join((*batch, *own))
    mine = list(operands)
    mine[packed] = pattern.batched([sizes[letter] for letter in batch], "".join(batch))
    return f"{','.join(words)}->{''.join(output)}", tuple(mine)

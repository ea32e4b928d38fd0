# SPDX-License-Identifier: Apache-2.0
"""What a kernel computes: an index statement on operands with dtypes and formats, and its steps."""

from __future__ import annotations

import dataclasses

import torch


@dataclasses.dataclass(frozen=True)
class Operand:
    """A tensor of the statement. `format` is the text of its encoding, None for a dense one.

    A `dtype` of None makes an encoded operand a pattern: its structure takes part, values it has none.
    """

    name: str
    indices: tuple[str, ...]
    dtype: torch.dtype | None
    format: str | None = None


@dataclasses.dataclass(frozen=True)
class KernelSpec:
    """`output[...] = sum over the other letters of the product of operands, + bias`.

    `divisible` gives each letter the largest power of two (at most 128) that its size is known to be a multiple of.
    Sizes are no part of it, so layers share kernels; nor is the user's line.
    """

    name: str
    operands: tuple[Operand, ...]
    output: Operand
    bias: Operand | None = None
    divisible: tuple[tuple[str, int], ...] = ()
    steps: tuple = ()
    location: tuple[str, int] | None = dataclasses.field(default=None, compare=False)

    @property
    def loops(self) -> tuple[str, ...]:
        """All letters: those of the output, then those that are summed over, in order of appearance."""
        letters = dict.fromkeys(self.output.indices)
        letters.update(dict.fromkeys(i for operand in self.operands for i in operand.indices))
        return tuple(letters)

    @property
    def arguments(self) -> tuple[Operand, ...]:
        """The arguments of the kernel's function, in order."""
        return self.operands if self.bias is None else (*self.operands, self.bias)

    @property
    def packed(self) -> int:
        """The number of the packed operand."""
        return next(n for n, operand in enumerate(self.operands) if operand.format is not None)

    @property
    def dtype(self) -> torch.dtype:
        return self.output.dtype

    def with_dtype(self, dtype: torch.dtype) -> KernelSpec:
        """The same kernel for another dtype."""
        change = lambda operand: operand and dataclasses.replace(operand, dtype=dtype)
        operands = tuple(change(operand) for operand in self.operands)
        return dataclasses.replace(self, operands=operands, output=change(self.output), bias=change(self.bias))


def divisible(size: int) -> int:
    """The largest power of two, at most 128, that divides a size.

    >>> divisible(768), divisible(30), divisible(0)
    (128, 2, 1)
    """
    return min(size & -size, 128) or 1

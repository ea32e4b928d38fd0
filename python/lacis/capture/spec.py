# SPDX-License-Identifier: Apache-2.0
"""What a kernel computes: an index statement on operands with dtypes and formats, and its steps."""

from __future__ import annotations

import dataclasses
import functools

import torch

from .. import knobs


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
    """`output[...] = activation(scale * reduce(combine(operands) over the other letters) + bias) + residual`.

    The semiring says what combines (a product) and reduces (a sum). An output with a format is sampled: it has the
    letters of the packed operand, in its order, and is computed at the entries of its pattern only. The dtype of the
    output says how the sum is stored: that of half operands, or the float32 of the sum itself.
    `divisible` gives each letter the largest power of two (at most 128) that its size is known to be a multiple of.
    `uneven` has the letters of the packed operand some of whose coordinates have far more entries than most, `large`
    those with many coordinates, `skewed` those that are both and have few entries on the mean, `filled` those most of
    whose coordinates a level lists, `hypersparse` those most of whose coordinates have no entry; `eighths` of it are
    stored, rounded, 1 at least; `slabs` is the room of a stage for small stored blocks on tensor cores; `tf32`, that
    torch lets float32 products take TF32: hints, from which default schedules choose.
    `scale` is a number, or an operand without letters or with those of the bias.
    A `checked` kernel guards every access, see `LACIS_DEBUG`. A `deterministic` one has no sum that depends on timing.
    `room`: the packed operand's arrays may be longer than its positions count, and what is sampled is 0 there.
    A `plain` one leaves tensor cores, and the structures that they walk, aside.
    Sizes are no part of it, so layers share kernels; nor is the user's line.
    """

    name: str
    operands: tuple[Operand, ...]
    output: Operand
    bias: Operand | None = None
    divisible: tuple[tuple[str, int], ...] = ()
    steps: tuple = ()
    location: tuple[str, int] | None = dataclasses.field(default=None, compare=False)
    semiring: str = "plus_times"
    scale: Operand | float | None = None
    activation: str | None = None
    residual: Operand | None = None
    uneven: tuple[str, ...] = ()
    large: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    hypersparse: tuple[str, ...] = ()
    skewed: tuple[str, ...] = ()
    eighths: int = 8
    slabs: int | None = None
    tf32: bool = False
    deterministic: bool = True
    checked: bool = dataclasses.field(default_factory=lambda: knobs.debug)
    plain: bool = False
    room: bool = False

    @property
    def loops(self) -> tuple[str, ...]:
        """All letters: those of the output, then those that are summed over, in order of appearance."""
        letters = dict.fromkeys(self.output.indices)
        letters.update(dict.fromkeys(i for operand in self.operands for i in operand.indices))
        return tuple(letters)

    @property
    def arguments(self) -> tuple[Operand, ...]:
        """The arguments of the kernel's function, in order: the operands, then what the epilogue reads."""
        return (*self.operands, *self.epilogue)

    @property
    def epilogue(self) -> tuple[Operand, ...]:
        """The tensors of the epilogue: scale, bias, residual, as far as there are."""
        return tuple(o for o in (self.scale, self.bias, self.residual) if isinstance(o, Operand))

    @functools.cached_property
    def packed(self) -> int:
        """The number of the packed operand."""
        return next(n for n, operand in enumerate(self.operands) if operand.format is not None)

    @property
    def sampled(self) -> bool:
        """Is the output packed, on the pattern of the packed operand?"""
        return self.output.format is not None

    @functools.cached_property
    def scattered(self) -> bool:
        """Is the output dense, with every letter of the packed operand? Then each entry has outputs of its own."""
        return not self.sampled and set(self.operands[self.packed].indices) <= set(self.output.indices)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the output."""
        return self.output.dtype

    @property
    def narrow(self) -> torch.dtype:
        """The dtype of the operands; a sum that is stored unrounded, or what arrives for one, may be wider."""
        dtypes = [operand.dtype for operand in (*self.operands, self.output) if operand.dtype is not None]
        return min(dtypes, key=lambda dtype: dtype.itemsize)

    def rounded(self) -> KernelSpec:
        """The same kernel with a result of the dtype of the operands."""
        return dataclasses.replace(self, output=dataclasses.replace(self.output, dtype=self.narrow))

    def with_dtype(self, dtype: torch.dtype) -> KernelSpec:
        """The same kernel for operands of another dtype; what is wider than they are stays so."""
        narrow = self.narrow
        change = lambda o: dataclasses.replace(o, dtype=dtype) if isinstance(o, Operand) and o.dtype == narrow else o
        names = ("output", "bias", "scale", "residual")
        changed = {name: change(getattr(self, name)) for name in names}
        return dataclasses.replace(self, operands=tuple(map(change, self.operands)), **changed)


def kind_of(target: str) -> str | None:
    """The kind of device that a target names; None where it is that of the tensors.

    >>> kind_of("cuda:sm_90a"), kind_of("auto")
    ('cuda', None)
    """
    kind = target.partition(":")[0]
    return kind if kind in ("cpu", "cuda") else None


def divisible(size: int) -> int:
    """The largest power of two, at most 128, that divides a size.

    >>> divisible(768), divisible(30), divisible(0)
    (128, 2, 1)
    """
    return min(size & -size, 128) or 1

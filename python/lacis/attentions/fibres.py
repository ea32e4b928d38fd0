# SPDX-License-Identifier: Apache-2.0
"""Sums and maxima along one axis of a packed tensor, and what they are spread over again."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..patterns.transforms import is_transformed
from ..packing import PackedTensor
from ..patterns import Pattern
from ..runtime.einsum import einsum

_LETTERS = "bcdefghijklmnopqrstuvwxyz"


class Fibres:
    """The entries of a pattern, those together whose coordinates differ along `axis` alone.

    `total` and `spread` are linear and each other's transpose, so a gradient of one is the other: kernels that own
    what they write, and no atomics. Transforms of `torch.func` look into their einsums instead.
    """

    def __init__(self, pattern: Pattern, axis: int, target: str = "auto"):
        self.pattern, self.target = pattern, target
        self.letters = _LETTERS[: len(pattern.shape)]
        self.kept = self.letters[:axis] + self.letters[axis + 1 :]
        self.shape = [length for n, length in enumerate(pattern.shape) if n != axis]

    def total(self, packed: PackedTensor) -> torch.Tensor:
        """The sum over each fibre, of the shape without the axis; 0 where there is no entry. Differentiable."""
        return self._reduced(packed) if is_transformed() else _Total.apply(self, *packed.values_by_part.values())

    def spread(self, dense: torch.Tensor) -> PackedTensor:
        """The number of its fibre at every entry, 0 in padding. Differentiable."""
        return self._packed(self._spread(dense) if is_transformed() else _Spread.apply(self, dense))

    def largest(self, packed: PackedTensor) -> torch.Tensor:
        """The maximum over each fibre, -infinity where there is no entry; NaN wins. It has no gradient."""
        with torch.no_grad():
            if is_transformed():  # no_grad keeps tangents
                packed = self._packed(each.detach() for each in packed.values_by_part.values())
            return self._reduced(packed, semiring="max_times")

    def _packed(self, values) -> PackedTensor:
        return PackedTensor(self.pattern, dict(zip(self.pattern.parts, values)))

    def _reduced(self, packed: PackedTensor, **how) -> torch.Tensor:
        return einsum(f"{self.letters}->{self.kept}", packed, target=self.target, **how)

    def _spread(self, dense: torch.Tensor) -> tuple:
        said = f"{self.letters},{self.kept}->{self.letters}"
        return tuple(einsum(said, self.pattern, dense.contiguous(), target=self.target).values_by_part.values())


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fibres, *values):
        ctx.fibres = fibres
        return fibres._reduced(fibres._packed(values))

    @staticmethod
    def backward(ctx, arrived):
        return None, *_Spread.apply(ctx.fibres, arrived)


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fibres, dense):
        ctx.fibres = fibres
        return fibres._spread(dense)

    @staticmethod
    def backward(ctx, *arrived):
        return None, _Total.apply(ctx.fibres, *arrived)


def axis_of(what: str, packed: PackedTensor, letter) -> int:
    """The number of the axis that a letter of the format's text, or a number, names. Raises `DataError`."""
    pattern = packed.pattern
    names, rank = next(iter(pattern.parts.values())).format.axes, len(pattern.shape)
    if isinstance(letter, int) and not isinstance(letter, bool) and -rank <= letter < rank:
        return letter % rank
    if isinstance(letter, str) and letter in names:
        return names.index(letter)
    raise DataError(f"{what}: no axis {letter!r}; the format's text names {', '.join(names)}")

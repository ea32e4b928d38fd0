# SPDX-License-Identifier: Apache-2.0
"""Dropout of shares: a function of a seed and of coordinates, by torch and as arithmetic of a chain."""

from __future__ import annotations

import dataclasses
import operator

import torch

from ..capture.chain import Expression
from ..capture.philox import random_bits
from ..capture.traced import Traced, combine
from ..errors import DataError


@dataclasses.dataclass(frozen=True)
class Rate:
    """The share of shares of which nothing is left."""

    rate: float

    @property
    def limit(self) -> int:
        """Places whose random bits are below it are dropped."""
        return min(round(self.rate * 2**32), 2**32 - 1)

    @property
    def factor(self) -> float:
        """Of what is left."""
        return 1 / (1 - self.rate)


@dataclasses.dataclass(frozen=True)
class Dropout(Rate):
    """By torch: `seed` is an int64 number on the device."""

    seed: torch.Tensor

    def of(self, values: torch.Tensor, where) -> torch.Tensor:
        """What is left of values at (b, h, i, j)."""
        kept = random_bits(self.seed, *where) >= self.limit
        return torch.where(kept, values * self.factor, 0)


@dataclasses.dataclass(frozen=True)
class TracedDropout(Rate):
    """In a chain: `where` are (b, h, i, j) as expressions of the coordinates of scores."""

    where: tuple[Expression, ...]

    def kept(self, values: Traced, seed: Traced) -> Traced:
        """Is a place among those of the values left?"""
        body = ("kept", self.limit, ("read", 0), *self.where)
        return Traced(values.trace, seed.reads, body, values.letters, True)

    def of(self, values: Traced, seed: Traced) -> Traced:
        """What is left of values; what shares are still to be divided by stays so."""
        own = Traced(values.trace, values.reads, values.body, values.letters, values.sampled)
        found = combine("where", self.kept(values, seed), own * self.factor, 0.0)
        return Traced(found.trace, found.reads, found.body, found.letters, True, values.divisor)


def seed_of(given, device: torch.device) -> torch.Tensor:
    """An int64 number on the device, drawn there where none is given; CUDA graphs capture that."""
    if given is None:
        return torch.randint(2**62, (), device=device)
    if isinstance(given, torch.Tensor):
        whole = not (given.is_floating_point() or given.is_complex() or given.dtype == torch.bool)
        if given.numel() != 1 or not whole or given.device.type == "meta":
            said = f"{given.dtype} {list(given.shape)} on {given.device}"
            raise DataError(f"attention: a tensor as seed holds one whole number, not {said}")
        return given.to(device, torch.int64).reshape(())
    try:
        number = -(2**63) - 1 if isinstance(given, bool) else operator.index(given)
        return torch.full((), number, dtype=torch.int64, device=device)
    except (TypeError, RuntimeError, OverflowError) as error:
        raise DataError(f"attention: seed is a whole number of 64 bits, or a tensor of one, not {given!r}") from error

# SPDX-License-Identifier: Apache-2.0
"""What a policy sees of a weight when it chooses its next pattern."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math

import torch

from .choose import Keys, hashed, unblocked


class Candidates:
    """Places that hold nothing, and the gradient that a value there would have had.

    `everywhere` has a row for each place, stored or not; `choose` answers the places, which all are where it is None.
    """

    def __init__(self, everywhere: torch.Tensor, view: View, choose=None):
        self.everywhere, self.are_all = everywhere, choose is None
        self._choose, self._empty = choose or view.empty, view.total - view.count

    @functools.cached_property
    def positions(self) -> torch.Tensor:
        """int64 [n], ascending."""
        return self._choose()

    @property
    def count(self) -> int:
        """How many there are."""
        return self._empty if self.are_all else len(self.positions)

    @property
    def grad(self) -> torch.Tensor:
        """[n], or [n, elements of a block]."""
        return self.everywhere[self.positions]


@dataclasses.dataclass
class View:
    """A weight as a policy sees it: its *places*, which are blocks where the policy chooses blocks, else entries.

    `positions` are the row-major numbers of the places that are stored, in the grid of `grid` places; `values`, and
    `grad` where the policy reads it, have a row for each. `step` counts the calls of `Updates.step`.
    """

    name: str
    step: int
    shape: tuple[int, ...]
    block: tuple[int, ...] | None  # the sizes of a place; None where places are entries
    positions: torch.Tensor  # int64 [count], ascending
    values: torch.Tensor  # [count], or [count, elements of a block], 0 beyond the tensor's edges
    grad: torch.Tensor | None = None
    candidates: Candidates | None = None
    state: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)  # a row for each place; they follow it
    policy_seed: int = 0
    seed_on_device: torch.Tensor | None = None  # int64 scalar, `seed` modulo 2^64: of an update that is done again

    @property
    def count(self) -> int:
        """How many places are stored."""
        return self.positions.numel()

    @property
    def grid(self) -> tuple[int, ...]:
        """How many places there are along each axis."""
        return self.shape if self.block is None else tuple(-(-n // b) for n, b in zip(self.shape, self.block))

    @property
    def total(self) -> int:
        """How many places there are, stored or not."""
        return math.prod(self.grid)

    @property
    def rows(self) -> torch.Tensor:
        """The row of each stored place: its number along the first axis of the grid."""
        return self.positions // (self.total // max(self.grid[0], 1) or 1)

    @functools.cached_property
    def seed(self) -> int:
        """A number that follows from the policy's seed, the name and the step: the same on every rank and run."""
        return seed_of(self.policy_seed, self.name, self.step)

    def hashed(self, positions: torch.Tensor, salt: int = 0) -> torch.Tensor:
        """int64 for each of `positions`: look random, follow from `seed`, and are the same on every device."""
        return self.keys(self.total, salt).at(positions)

    def keys(self, count: int, salt: int = 0) -> Keys:
        """`hashed` of positions below `count`."""
        seed = self.seed if self.seed_on_device is None else self.seed_on_device
        return hashed(count, seed + salt, self.positions.device)

    def empty(self) -> torch.Tensor:
        """int64: the places that are not stored, ascending."""
        return self.complement(self.positions)

    def complement(self, positions: torch.Tensor) -> torch.Tensor:
        """int64: all places but these, which are distinct."""
        left = torch.ones(self.total, dtype=torch.bool, device=positions.device)
        left.index_fill_(0, positions, False)  # a number that is assigned would be sent, and the host would wait
        if positions.device.type == "cpu":
            return left.nonzero().reshape(-1)
        return left.nonzero_static(size=self.total - positions.numel()).reshape(-1)

    def dense(self) -> torch.Tensor:
        """The weight as a strided tensor."""
        rows = self.values.new_zeros(self.total, *self.values.shape[1:])
        rows[self.positions] = self.values
        return rows.reshape(self.shape) if self.block is None else unblocked(rows, self.block, self.shape)


def seed_of(policy_seed: int, name: str, step: int) -> int:
    """The seed of an update: a number below 2^64 for each policy's seed, weight and step."""
    text = f"{policy_seed}:{name}:{step}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

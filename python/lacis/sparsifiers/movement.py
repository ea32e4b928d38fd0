# SPDX-License-Identifier: Apache-2.0
"""Keeps what training moves away from zero."""

from __future__ import annotations

import torch

from ..errors import DataError
from .block_magnitude import BlockMagnitude
from .choose import keep_count
from .entries_first import entries_first
from .magnitude import Magnitude
from .policy import Policy
from .ramp import Ramp


class Movement(Policy):
    """Keep the places that training moves away from zero: movement pruning (Sanh et al., 2020), hard.

    Each call of `Updates.step` adds `-value * gradient` to the score of each place (of a block, the sum over it). When
    the `Ramp` says, the places of largest scores stay; of equal ones the first, and scores that are not finite go
    first. Call `step` where gradients are there: before `optimizer.step()` the scores are those of the paper.

    >>> import torch
    >>> int(Movement(Ramp(0.5, 0.9, range(0, 1000, 100)))(torch.ones(4, 4)).sum())  # at `build`, by magnitude
    8

    Raises `DataError` unless it is given a `Ramp` of shares from 0 to 1.
    """

    needs_state = True

    def __init__(self, sparsity: Ramp, block=None):
        if not isinstance(sparsity, Ramp):
            raise DataError(f"Movement: a Ramp is expected, as Ramp(0.0, 0.9, range(0, 1000, 100)), not {sparsity!r}")
        self.sparsity = Magnitude(sparsity).sparsity
        super().__init__(sparsity.when, reads=["grad"])
        self.block = None if block is None else tuple(block)

    def mask(self, tensor):
        if self.block is None or not self.block:
            return Magnitude(self.sparsity).mask(tensor)
        return BlockMagnitude(self.sparsity, block=self.block).mask(tensor)

    def state(self, view):
        wide = torch.promote_types(view.values.dtype, torch.float32)
        return {"scores": torch.zeros(view.count, dtype=wide, device=view.values.device)}

    def observe(self, view):
        moved = -(view.values.to(view.state["scores"].dtype) * view.grad)
        view.state["scores"] += moved if view.block is None else moved.sum(-1)

    def change(self, view):
        count = keep_count(view.total, self.sparsity)
        scores = view.state["scores"]
        ranked = torch.where(scores.isfinite(), scores, -torch.inf)
        best = torch.sort(ranked, descending=True, stable=True).indices[:count]
        kept = torch.zeros(view.count, dtype=torch.bool, device=scores.device).index_fill(0, best, True)
        return entries_first(view, kept, count)

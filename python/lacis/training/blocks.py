# SPDX-License-Identifier: Apache-2.0
"""Blocks of a weight that is stored entry by entry: a policy chooses blocks, storage knows their entries."""

from __future__ import annotations

import dataclasses
import math

import torch

from ..patterns.places import Places, axes_of, flat_numbers
from .decision import Decision


class Blocks:
    """The blocks in which a pattern has entries, and where the entries lie in them."""

    def __init__(self, places: Places, block: tuple[int, ...]):
        self.places, self.block = places, block
        axes = axes_of(places.positions, places.shape, None)
        self.positions, self.owner = torch.unique(flat_numbers(axes, places.shape, block), return_inverse=True)
        self.inside = flat_numbers([axis % size for axis, size in zip(axes, block)], block, None)

    def rows(self, rows: torch.Tensor) -> torch.Tensor:
        """[blocks, elements]: rows of entries, 0 where a block has none."""
        found = rows.new_zeros(len(self.positions), math.prod(self.block))
        return found.index_put((self.owner, self.inside), rows.reshape(-1))

    def entries(self, decision: Decision) -> Decision:
        """The decision of entries: kept blocks have those they had, others all."""
        keep, grow, initial = decision.keep, decision.grow, decision.initial
        is_kept = torch.zeros(len(self.positions), dtype=torch.bool, device=keep.device).index_fill(0, keep, True)
        shape, elements = self.places.shape, torch.arange(math.prod(self.block), device=grow.device)
        first, within = axes_of(grow, shape, self.block), axes_of(elements, self.block, None)
        axes = [(a[:, None] + b[None, :]).reshape(-1) for a, b in zip(first, within)]
        sound = torch.stack([axis < size for axis, size in zip(axes, shape)]).all(0)
        numbers, order = flat_numbers([axis[sound] for axis in axes], shape, None).sort()
        kept = is_kept[self.owner].nonzero().reshape(-1)
        return dataclasses.replace(decision, keep=kept, grow=numbers, initial=initial.reshape(-1)[sound][order])

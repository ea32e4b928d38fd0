# SPDX-License-Identifier: Apache-2.0
"""What a sparsifier decided: the places that a weight stores next, and where each comes from."""

from __future__ import annotations

import dataclasses

import torch


@dataclasses.dataclass
class Next:
    """The places afterwards, int64 ascending, where each comes from, and what the rows that come begin with.

    `source` is the index of a place before, or their number + an index of `initial`, of which not all need be used.
    """

    positions: torch.Tensor
    source: torch.Tensor
    initial: torch.Tensor

    changes = True  # nobody waits to know

    def after(self, positions: torch.Tensor) -> Next:
        return self


@dataclasses.dataclass
class Decision:
    """Which places stay, int64 indices, and which come, int64 positions, both ascending; what the latter begin with."""

    keep: torch.Tensor
    grow: torch.Tensor
    initial: torch.Tensor
    changes: bool

    def after(self, positions: torch.Tensor) -> Next:
        """The next places, those before being `positions`, ascending."""
        old, grow = positions[self.keep], self.grow
        old_at = torch.searchsorted(grow, old) + torch.arange(len(old), device=old.device)
        grown_at = torch.searchsorted(old, grow) + torch.arange(len(grow), device=old.device)
        joined, source = (positions.new_empty(len(old) + len(grow)) for _ in range(2))
        joined[old_at], joined[grown_at] = old, grow
        source[old_at] = self.keep
        source[grown_at] = len(positions) + torch.arange(len(grow), device=old.device)
        return Next(joined, source, self.initial)

# SPDX-License-Identifier: Apache-2.0
"""What a sparsifier decided: the places that a weight stores next, and where each comes from."""

from __future__ import annotations

import dataclasses

import torch

from ..sparsifiers.entries_first import indices


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
        old, grow = positions.index_select(0, self.keep), self.grow
        grown_at = torch.searchsorted(old, grow) + torch.arange(len(grow), device=old.device)
        joined, source = (positions.new_empty(len(old) + len(grow)) for _ in range(2))
        is_old = torch.ones(len(joined), dtype=torch.bool, device=old.device).index_fill_(0, grown_at, False)
        old_at = indices(is_old, len(old))
        joined[old_at], joined[grown_at] = old, grow
        source[old_at] = self.keep
        source[grown_at] = len(positions) + torch.arange(len(grow), device=old.device)
        return Next(joined, source, self.initial)

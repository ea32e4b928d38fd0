# SPDX-License-Identifier: Apache-2.0
"""Rules that make their blocks head by head."""

from __future__ import annotations

import random

import torch

from .directed import Directed


class ByHead(Directed):
    """Base of rules whose heads may differ: `_head` answers one of them, on the square that covers both lengths."""

    different_layout_per_head = False
    seed = 0

    def layout(self, heads, q, k, block):
        rows, columns = self.grid(q, k, block)
        drawn, count = random.Random(self.seed), heads if self.different_layout_per_head else 1
        made = [self._head(head, max(rows, columns), drawn) for head in range(count)]
        return torch.stack(made)[:, :rows, :columns]

    def _head(self, head: int, count: int, drawn: random.Random) -> torch.Tensor:
        """bool [count, count] of one head; what is random comes from `drawn`, which goes on from head to head."""
        raise NotImplementedError

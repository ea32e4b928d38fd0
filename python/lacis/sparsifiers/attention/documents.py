# SPDX-License-Identifier: Apache-2.0
"""Documents one after the other, each of which sees itself alone."""

from __future__ import annotations

import torch

from ...errors import DataError
from .rule import PatternRule, positive


class Documents(PatternRule):
    """Sequences of the lengths `lengths` side by side: a query sees the keys of its own, those before it if `causal`.

    Tokens behind the last see nothing.

    >>> Documents([2, 1]).layout(1, 4, 4, 1)[0].int().tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    """

    pure = True

    def __init__(self, lengths, *, causal: bool = False, block: int = 64):
        positive(block=block)
        self.lengths = tuple(int(length) for length in lengths)
        if any(length < 0 for length in self.lengths):
            raise DataError(f"lengths of documents are 0 or more, not {list(self.lengths)}")
        self.causal, self.block = causal, block
        self._ends = torch.tensor(self.lengths, dtype=torch.int64).cumsum(0)

    def layout(self, heads, q, k, block):
        # The first and the last document that a block touches; no document lies between without being touched.
        bounds = [torch.searchsorted(self._ends, edge.contiguous(), right=True) for edge in self.ranges(q, k, block)]
        last = len(self.lengths) - 1
        meet = (bounds[0] <= bounds[3].clamp(max=last)) & (bounds[2] <= bounds[1].clamp(max=last))
        if self.causal:
            _, last_i, first_j, _ = self.ranges(q, k, block)
            meet &= first_j <= last_i
        return meet[None]

    def mask(self, b, h, i, j):
        ends = self._ends.to(i.device)
        document = lambda token: (token >= ends).sum(-1)
        same = (document(i[..., None]) == document(j[..., None])) & (i < self._total)
        return same & (j <= i) if self.causal else same

    @property
    def _total(self) -> int:
        return sum(self.lengths)

# SPDX-License-Identifier: Apache-2.0
"""Documents one after the other, each of which sees itself alone."""

from __future__ import annotations

import itertools
import operator

import torch

from ...errors import DataError
from .rule import PatternRule, positive


class Documents(PatternRule):
    """Sequences of the lengths `lengths` side by side: a query sees the keys of its own, those before it if `causal`.

    Tokens behind the last see nothing.

    >>> Documents([2, 1]).layout(1, 4, 4, 1)[0].int().tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    """

    by_position = True
    pure = True

    def __init__(self, lengths, *, causal: bool = False, block: int = 64):
        positive(block=block)
        try:
            self.lengths = tuple(operator.index(length) for length in lengths)
        except TypeError:
            raise DataError(f"lengths of documents are whole numbers, 0 or more, not {lengths!r}") from None
        if any(length < 0 for length in self.lengths):
            raise DataError(f"lengths of documents are 0 or more, not {list(self.lengths)}")
        self.causal, self.block = causal, block

    def layout(self, heads, q, k, block):
        # The first and the last document that a block touches; no document lies between without being touched.
        bounds = [self._numbers(edge.contiguous()) for edge in self.ranges(q, k, block)]
        last = len(self.lengths) - 1
        meet = (bounds[0] <= bounds[3].clamp(max=last)) & (bounds[2] <= bounds[1].clamp(max=last))
        if self.causal:
            _, last_i, first_j, _ = self.ranges(q, k, block)
            meet &= first_j <= last_i
        return meet[None]

    def mask_of_shape(self, shape, block, device):
        of_q, of_k = (self._numbers(torch.arange(length)) for length in shape[2:])
        of_k[of_k == len(self.lengths)] = -1  # no query has that
        of_q, of_k, causal = of_q.to(device), of_k.to(device), self.causal
        return lambda b, h, i, j: (of_q[i] == of_k[j]) & (j <= i) if causal else of_q[i] == of_k[j]

    def mask(self, b, h, i, j):
        """By comparisons alone, which take places that are computed."""
        ends = list(itertools.accumulate(length for length in self.lengths if length))
        same = (i >= _chosen(j, ends, [0, *ends[:-1], 0])) & (i < _chosen(j, ends, [*ends, 0]))
        return same & (j <= i) if self.causal else same

    def _numbers(self, tokens: torch.Tensor) -> torch.Tensor:
        """The document of each token, their count behind the last."""
        ends = torch.tensor(list(itertools.accumulate(self.lengths)), dtype=torch.int64)
        return torch.searchsorted(ends, tokens, right=True)


def _chosen(token, ends: list[int], values: list[int]):
    """The value of the document of a token, the last value behind the last document, by halving."""
    if not ends:
        return values[0]
    half = len(ends) // 2
    before = _chosen(token, ends[:half], values[: half + 1])
    return torch.where(token < ends[half], before, _chosen(token, ends[half + 1 :], values[half + 1 :]))

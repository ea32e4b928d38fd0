# SPDX-License-Identifier: Apache-2.0
"""A band around the diagonal."""

from __future__ import annotations

from .rule import PatternRule, at_least_zero, positive


class Local(PatternRule):
    """Query i sees the keys from i - window to i + window; those after it not where `causal`.

    >>> Local(1).layout(1, 4, 4, 1)[0].int().tolist()
    [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    """

    by_position = True
    pure = True

    def __init__(self, window: int, *, causal: bool = False, block: int = 64):
        at_least_zero(window=window)
        positive(block=block)
        self.window, self.causal, self.block = window, causal, block

    def layout(self, heads, q, k, block):
        first_i, last_i, first_j, last_j = self.ranges(q, k, block)
        after = 0 if self.causal else self.window
        return ((first_i - last_j <= self.window) & (first_j - last_i <= after))[None]

    def mask(self, b, h, i, j):
        after = 0 if self.causal else self.window
        return (i - j <= self.window) & (j - i <= after)

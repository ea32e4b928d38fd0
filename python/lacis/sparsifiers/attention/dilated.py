# SPDX-License-Identifier: Apache-2.0
"""A band with holes at equal distances."""

from __future__ import annotations

from .rule import PatternRule, at_least_zero, positive


class Dilated(PatternRule):
    """Query i sees `window` keys on each side, `dilation` apart: i, i ± dilation, i ± 2 dilation, ...

    Of Longformer (Beltagy et al. 2020). After itself it sees none where `causal`.

    >>> Dilated(1, 2).layout(1, 5, 5, 1)[0].int().tolist()
    [[1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [1, 0, 1, 0, 1], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1]]
    """

    by_position = True
    pure = True

    def __init__(self, window: int, dilation: int, *, causal: bool = False, block: int = 64):
        at_least_zero(window=window)
        positive(dilation=dilation, block=block)
        self.window, self.dilation, self.causal, self.block = window, dilation, causal, block

    def layout(self, heads, q, k, block):
        first_i, last_i, first_j, last_j = self.ranges(q, k, block)
        reach = self.window * self.dilation
        lowest = (first_j - last_i).clamp(min=-reach)  # the differences j - i of a block are all between two
        highest = (last_j - first_i).clamp(max=0 if self.causal else reach)
        return (highest.div(self.dilation, rounding_mode="floor") * self.dilation >= lowest)[None]

    def mask(self, b, h, i, j):
        after = 0 if self.causal else self.window * self.dilation
        return (i - j <= self.window * self.dilation) & (j - i <= after) & ((i - j) % self.dilation == 0)

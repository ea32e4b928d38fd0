# SPDX-License-Identifier: Apache-2.0
"""Queries see no key that comes after them."""

from __future__ import annotations

from .rule import PatternRule, positive


class Causal(PatternRule):
    """Query i sees the keys j <= i, as `is_causal` of `F.scaled_dot_product_attention`, for different lengths too.

    >>> Causal().layout(1, 3, 3, 1)[0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """

    by_position = True
    pure = True

    def __init__(self, *, block: int = 64):
        positive(block=block)
        self.block = block

    def layout(self, heads, q, k, block):
        _, last, first, _ = self.ranges(q, k, block)
        return (first <= last)[None]

    def mask(self, b, h, i, j):
        return j <= i

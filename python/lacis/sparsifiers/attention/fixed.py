# SPDX-License-Identifier: Apache-2.0
"""Local windows of blocks, each with blocks that all see."""

from __future__ import annotations

import random

import torch

from ...errors import DataError
from .by_head import ByHead
from .rule import positive


class Fixed(ByHead):
    """Windows of `num_local_blocks`, in each of which `num_global_blocks` at the end are seen by all.

    DeepSpeed's `FixedSparsityConfig` with its keywords (Child et al. 2019). Unidirectional, a query sees no later
    key, inside a block neither. `num_different_global_patterns` lets heads take other blocks of the window, which needs
    `different_layout_per_head`. Keys and queries of different lengths take a part of the square layout.

    >>> Fixed(num_local_blocks=2).layout(1, 4, 4, 1)[0].int().tolist()
    [[1, 1, 0, 1], [1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 1, 1]]
    """

    pure = True

    def __init__(
        self,
        *,
        num_local_blocks: int = 4,
        num_global_blocks: int = 1,
        attention: str = "bidirectional",
        horizontal_global_attention: bool = False,
        num_different_global_patterns: int = 1,
        different_layout_per_head: bool = False,
        block: int = 64,
    ):
        positive(block=block, num_local_blocks=num_local_blocks, num_global_blocks=num_global_blocks)
        positive(num_different_global_patterns=num_different_global_patterns)
        self.turn(attention, horizontal_global_attention)
        if num_local_blocks % num_global_blocks:
            raise DataError(f"num_global_blocks, {num_global_blocks}, must divide num_local_blocks, {num_local_blocks}")
        if num_different_global_patterns > 1 and not different_layout_per_head:
            raise DataError("num_different_global_patterns above 1 needs different_layout_per_head=True")
        if num_different_global_patterns > num_local_blocks // num_global_blocks:
            raise DataError(
                f"num_different_global_patterns is {num_different_global_patterns}, a window has room for "
                f"{num_local_blocks // num_global_blocks}"
            )
        self.num_local_blocks, self.num_global_blocks = num_local_blocks, num_global_blocks
        self.horizontal_global_attention = horizontal_global_attention
        self.num_different_global_patterns = num_different_global_patterns
        self.different_layout_per_head, self.block = different_layout_per_head, block

    def _head(self, head: int, count: int, drawn: random.Random) -> torch.Tensor:
        number = torch.arange(count)
        layout = number[:, None] // self.num_local_blocks == number // self.num_local_blocks
        if self.is_causal:
            layout = layout.tril()
        width = self.num_global_blocks
        first = self.num_local_blocks - (1 + head % self.num_different_global_patterns) * width
        whole = count - count % self.num_local_blocks
        starts = list(range(first, whole, self.num_local_blocks))
        if whole < count:  # the last window is short
            starts.append(max(min(whole + first, count - width), 0))
        for start in starts:
            see(layout, start, start + width, self)
        return layout


def see(layout: torch.Tensor, start: int, end: int, rule) -> None:
    """Let all see the blocks from `start` to `end`, and these all where they are horizontal too."""
    if rule.horizontal_global_attention:
        layout[start:end] = True
    layout[start if rule.is_causal else 0 :, start:end] = True

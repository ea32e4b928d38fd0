# SPDX-License-Identifier: Apache-2.0
"""Random, sliding and global blocks."""

from __future__ import annotations

import random

import torch

from .by_head import ByHead
from .rule import at_least_zero, positive
from .variable import sample


class BigBird(ByHead):
    """Random blocks, a sliding window of blocks, and the first blocks, which see all and are seen by all.

    DeepSpeed's `BigBirdSparsityConfig` with its keywords (Zaheer et al. 2020). Random blocks are those that Python's
    `random.Random(seed)` samples row by row; unidirectional, a query sees no later key, inside a block neither.

    >>> BigBird(num_random_blocks=0).layout(1, 5, 5, 1)[0].int().tolist()
    [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 0, 1, 1, 1], [1, 0, 0, 1, 1]]
    """

    pure = True

    def __init__(
        self,
        *,
        num_random_blocks: int = 1,
        num_sliding_window_blocks: int = 3,
        num_global_blocks: int = 1,
        attention: str = "bidirectional",
        different_layout_per_head: bool = False,
        seed: int = 0,
        block: int = 64,
    ):
        at_least_zero(num_random_blocks=num_random_blocks, num_global_blocks=num_global_blocks)
        positive(block=block, num_sliding_window_blocks=num_sliding_window_blocks)
        self.turn(attention)
        self.num_random_blocks, self.num_sliding_window_blocks = num_random_blocks, num_sliding_window_blocks
        self.num_global_blocks = num_global_blocks
        self.different_layout_per_head, self.seed, self.block = different_layout_per_head, seed, block

    def _head(self, head: int, count: int, drawn: random.Random) -> torch.Tensor:
        layout = sliding(count, self.num_sliding_window_blocks)
        sample(layout, drawn, self.num_random_blocks, later=not self.is_causal)
        layout[: self.num_global_blocks] = True
        layout[:, : self.num_global_blocks] = True
        return layout.tril() if self.is_causal else layout


def sliding(count: int, window: int) -> torch.Tensor:
    """The blocks less than half a window from the diagonal."""
    number = torch.arange(count)
    return (number[:, None] - number).abs() <= window // 2

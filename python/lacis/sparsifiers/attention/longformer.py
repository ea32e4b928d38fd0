# SPDX-License-Identifier: Apache-2.0
"""A sliding window of blocks, and global ones by number."""

from __future__ import annotations

from .big_bird import sliding
from .directed import Directed
from .rule import positive
from .variable import ends_of


class Longformer(Directed):
    """A sliding window of blocks, and global blocks by number, which see all and are seen by all.

    DeepSpeed's `BSLongformerSparsityConfig` with its keywords (Beltagy et al. 2020).

    >>> Longformer(global_block_indices=[1]).layout(1, 4, 4, 1)[0].int().tolist()
    [[1, 1, 0, 0], [1, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]]
    """

    pure = True

    def __init__(
        self,
        *,
        num_sliding_window_blocks: int = 3,
        global_block_indices=(0,),
        global_block_end_indices=None,
        attention: str = "bidirectional",
        block: int = 64,
    ):
        positive(block=block, num_sliding_window_blocks=num_sliding_window_blocks)
        self.turn(attention)
        self.num_sliding_window_blocks = num_sliding_window_blocks
        self.global_block_indices = tuple(global_block_indices)
        self.global_block_end_indices = ends_of(global_block_indices, global_block_end_indices)
        self.block = block

    def layout(self, heads, q, k, block):
        rows, columns = self.grid(q, k, block)
        layout = sliding(max(rows, columns), self.num_sliding_window_blocks)
        for start, end in zip(self.global_block_indices, self.global_block_end_indices):
            layout[start:end] = True
            layout[:, start:end] = True
        layout = layout.tril() if self.is_causal else layout
        return layout[None, :rows, :columns]

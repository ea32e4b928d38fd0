# SPDX-License-Identifier: Apache-2.0
"""Local windows of several sizes, global blocks by number, and random ones."""

from __future__ import annotations

import random

import torch

from ...errors import DataError
from .by_head import ByHead
from .fixed import see
from .rule import at_least_zero, positive


class Variable(ByHead):
    """Windows of the sizes `local_window_blocks` (the last goes on), global blocks by number, random blocks a row.

    DeepSpeed's `VariableSparsityConfig` with its keywords. `global_block_end_indices` makes ranges of the global
    blocks. Random blocks are those that Python's `random.Random(seed)` samples row by row.

    >>> Variable(local_window_blocks=[1, 2]).layout(1, 5, 5, 1)[0].int().tolist()
    [[1, 0, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 0, 0, 1, 1], [1, 0, 0, 1, 1]]
    """

    pure = True

    def __init__(
        self,
        *,
        num_random_blocks: int = 0,
        local_window_blocks=(4,),
        global_block_indices=(0,),
        global_block_end_indices=None,
        attention: str = "bidirectional",
        horizontal_global_attention: bool = False,
        different_layout_per_head: bool = False,
        seed: int = 0,
        block: int = 64,
    ):
        positive(block=block, **{f"local_window_blocks[{n}]": size for n, size in enumerate(local_window_blocks)})
        at_least_zero(num_random_blocks=num_random_blocks)
        self.turn(attention, horizontal_global_attention)
        if not local_window_blocks:
            raise DataError("local_window_blocks has no sizes; one is needed")
        self.num_random_blocks, self.local_window_blocks = num_random_blocks, tuple(local_window_blocks)
        self.global_block_indices = tuple(global_block_indices)
        self.global_block_end_indices = ends_of(global_block_indices, global_block_end_indices)
        self.horizontal_global_attention = horizontal_global_attention
        self.different_layout_per_head, self.seed, self.block = different_layout_per_head, seed, block

    def _head(self, head: int, count: int, drawn: random.Random) -> torch.Tensor:
        layout = torch.zeros(count, count, dtype=torch.bool)
        sample(layout, drawn, self.num_random_blocks, later=True)
        local, start, n = torch.zeros_like(layout), 0, 0
        while start < count:
            size = self.local_window_blocks[min(n, len(self.local_window_blocks) - 1)]
            local[start : start + size, start : start + size] = True
            start, n = start + size, n + 1
        layout |= local.tril() if self.is_causal else local
        for start, end in zip(self.global_block_indices, self.global_block_end_indices):
            if start < count:
                see(layout, start, min(end, count), self)
        return layout


def ends_of(starts, ends) -> tuple[int, ...]:
    """The ends of ranges of global blocks; each is one block where none are given."""
    at_least_zero(**{f"global_block_indices[{n}]": start for n, start in enumerate(starts)})
    if ends is None:
        return tuple(start + 1 for start in starts)
    if len(ends) != len(starts) or any(end <= start for start, end in zip(starts, ends)):
        raise DataError("global_block_end_indices must have an end behind each of global_block_indices")
    return tuple(ends)


def sample(layout: torch.Tensor, drawn: random.Random, number: int, later: bool) -> None:
    """Set so many random blocks of each row, as many as it has at most; those after it too where `later`."""
    count = len(layout)
    for row in range(count if number else 0):
        among = range(count if later else row + 1)
        layout[row, drawn.sample(among, min(number, len(among)))] = True

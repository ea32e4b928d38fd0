# SPDX-License-Identifier: Apache-2.0
"""Keeps blocks chosen by a seed."""

from __future__ import annotations

import math

from .base import BlockSparsifier
from .choose import check_sparsity, hashed, keep_count, keep_largest, spread
from .ramp import Ramp


class BlockRandom(BlockSparsifier):
    """Keep `blocks - round(sparsity * blocks)` blocks that `seed` chooses, whole, the same on every device.

    >>> import torch
    >>> int(BlockRandom(0.5, seed=1, block=(2, 2))(torch.ones(4, 4)).sum())
    8
    """

    counts = True

    def __init__(self, sparsity: float | Ramp, seed: int = 0, block=None):
        self.sparsity = check_sparsity(sparsity)
        self.seed = seed
        self.block = None if block is None else tuple(block)

    def mask(self, tensor):
        block = self.known_block(tensor)
        grid = [-(-size // b) for size, b in zip(tensor.shape, block)]
        keys = hashed(math.prod(grid), self.seed, tensor.device)
        kept = keep_largest(keys, keep_count(keys.numel, self.sparsity))
        return spread(kept.reshape(grid), block, tensor.shape)

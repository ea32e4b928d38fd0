# SPDX-License-Identifier: Apache-2.0
"""Keeps entries chosen by a seed."""

from __future__ import annotations

from .base import Sparsifier
from .choose import check_sparsity, hashed, keep_count, keep_largest
from .ramp import Ramp


class Random(Sparsifier):
    """Keep `numel - round(sparsity * numel)` entries that `seed` chooses, the same on every device.

    >>> import torch
    >>> int(Random(0.75, seed=1)(torch.ones(8, 8)).sum())
    16
    """

    counts = True

    def __init__(self, sparsity: float | Ramp, seed: int = 0):
        self.sparsity = check_sparsity(sparsity)
        self.seed = seed

    def mask(self, tensor):
        keys = hashed(tensor.numel(), self.seed, tensor.device)
        return keep_largest(keys, keep_count(tensor.numel(), self.sparsity)).reshape(tensor.shape)

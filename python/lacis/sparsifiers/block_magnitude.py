# SPDX-License-Identifier: Apache-2.0
"""Keeps the blocks of largest norm."""

from __future__ import annotations

import math

import torch

from ..errors import DataError
from .base import BlockSparsifier
from .choose import blocked, check_sparsity, keep_count, keep_largest, magnitude, magnitudes, slabs, spread
from .entries_first import entries_first
from .ramp import Ramp


class BlockMagnitude(BlockSparsifier):
    """Keep the `blocks - round(sparsity * blocks)` blocks of largest `norm` (1, 2 or inf), whole.

    Blocks come from `.block(...)`, or from `block`. Edge blocks count with the elements that they have. `sparsity` may
    be a `Ramp`.

    >>> import torch
    >>> BlockMagnitude(0.5, block=(1, 2))(torch.tensor([[1.0, 1.0], [3.0, 0.0]])).tolist()
    [[False, False], [True, True]]

    Raises `DataError` for a share that is not from 0 to 1, and for another norm.
    """

    counts = True

    def __init__(self, sparsity: float | Ramp, norm: float = 2, block=None):
        self.sparsity = check_sparsity(sparsity)
        if isinstance(norm, bool) or norm not in (1, 2, math.inf):
            raise DataError(f"norm is 1, 2 or inf, not {norm!r}; a block size is given as block=(rows, columns)")
        self.norm = norm
        self.block = None if block is None else tuple(block)

    def mask(self, tensor):
        block = self.known_block(tensor)
        grid = [-(-size // b) for size, b in zip(tensor.shape, block)]
        scores, last = torch.empty(math.prod(grid), dtype=torch.float64, device=tensor.device), 0
        for part in slabs(tensor.shape, block[0]):  # small tensors of each would keep the memory of slabs apart
            norms = self._norms(tensor[part], block)
            first, last = last, last + norms.numel()
            scores[first:last] = norms.reshape(-1)
        keys = magnitudes(scores)
        kept = keep_largest(keys, keep_count(keys.numel, self.sparsity))
        return spread(kept.reshape(grid), block, tensor.shape)

    def _norms(self, tensor, block):
        return self._norm(blocked(magnitude(tensor), block))

    def _norm(self, rows):
        return torch.linalg.vector_norm(rows.double(), ord=self.norm, dim=-1)

    def change(self, view):
        count = keep_count(view.total, self.sparsity)
        return entries_first(view, keep_largest(magnitudes(self._norm(magnitude(view.values))), count), count)

# SPDX-License-Identifier: Apache-2.0
"""Blocks of queries and keys meet where they point the same way."""

from __future__ import annotations

import torch

from ...errors import DataError
from .rule import PatternRule, positive
from .top_k_blocks import means_of_blocks


class Similarity(PatternRule):
    """Each block of queries meets the blocks of keys whose means have a cosine of `threshold` or more with its own.

    Of these the `k` most alike at the most; the most alike in any case. As in Reformer (Kitaev, Kaiser and Levskaya
    2020), which finds vectors of one direction by hashing, but of blocks, whose cosines are computed. How many blocks
    a block meets follows the data, the size of the lists does not: -1 pads. The choice has no gradient, and nothing
    waits for the device.

    >>> q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]]).reshape(1, 1, 3, 2)
    >>> Similarity(0.8, k=2, block=1).blocks(q, q)[0, 0].tolist()
    [[0, 2], [1, -1], [2, 0]]

    Raises `DataError` for a threshold that is no number from -1 to 1.
    """

    def __init__(self, threshold: float = 0.5, *, k: int = 16, block: int = 64):
        positive(k=k, block=block)
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not -1 <= threshold <= 1:
            raise DataError(f"threshold must be a number from -1 to 1, as cosines are, not {threshold!r}")
        self.threshold, self.k, self.block = threshold, k, block

    def blocks(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        queries, keys = (torch.nn.functional.normalize(x, dim=-1) for x in means_of_blocks(q, k, self.block))
        cosines = queries @ keys.transpose(-1, -2)
        best = cosines.topk(min(self.k, cosines.shape[-1]), dim=-1)
        least = best.values[..., :1].clamp(max=self.threshold)
        return best.indices.masked_fill(best.values < least, -1)  # NaN is seen, not left out

# SPDX-License-Identifier: Apache-2.0
"""The blocks of keys that are most like a block of queries."""

from __future__ import annotations

import torch

from .rule import PatternRule, positive


class TopKBlocks(PatternRule):
    """Each block of queries meets the `k` blocks of keys with the largest score.

    `score(q, k) -> [B, H, nq, nk]` compares the means of the blocks, [B, H, nq, D] and [B, H, nk, D]; by default it is
    their product. The choice has no gradient, and nothing waits for the device: two launches behind the scores, which a
    CUDA graph has too. Where k has fewer heads than q, each serves a group of them.

    >>> q = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).reshape(1, 1, 2, 2)
    >>> TopKBlocks(1, block=1).blocks(q, q).tolist()
    [[[[0], [1]]]]
    """

    def __init__(self, k: int, *, score=None, block: int = 64):
        positive(k=k, block=block)
        self.k, self.score, self.block = k, score, block

    def blocks(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        means = means_of_blocks(q, k, self.block)
        product = lambda a, b: a @ b.transpose(-1, -2)
        with torch.no_grad():
            found = (self.score or product)(*means)
        return found.topk(min(self.k, found.shape[-1]), dim=-1, sorted=False).indices


def means_of_blocks(q: torch.Tensor, k: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The means of the blocks of queries and keys, in float32 at least, with as many heads."""
    queries, keys = _means(q, block), _means(k, block)
    groups = q.shape[1] // max(k.shape[1], 1)
    return queries, keys if groups == 1 else keys.repeat_interleave(groups, 1)


def _means(x: torch.Tensor, block: int) -> torch.Tensor:
    x, wide = x.detach(), torch.promote_types(x.dtype, torch.float32)
    count, rest = divmod(x.shape[2], block)
    whole = x if rest == 0 else x[:, :, : count * block]
    means = whole.unflatten(2, (count, block)).mean(3, dtype=wide)
    return means if rest == 0 else torch.cat([means, x[:, :, count * block :].mean(2, keepdim=True, dtype=wide)], 2)

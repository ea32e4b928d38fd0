# SPDX-License-Identifier: Apache-2.0
"""The blocks of keys that are most like a block of queries."""

from __future__ import annotations

import torch

from .rule import PatternRule, positive


class TopKBlocks(PatternRule):
    """Each block of queries meets the `k` blocks of keys with the largest score.

    `score(q, k) -> [B, H, nq, nk]` compares the means of the blocks, [B, H, nq, D] and [B, H, nk, D]; by default it is
    their product. The choice has no gradient, and nothing waits for the device. Where k has fewer heads than q, each
    serves a group of them.

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
        best = found.topk(min(self.k, found.shape[-1]), dim=-1).indices
        return best.sort(-1).values.to(torch.int32)


def means_of_blocks(q: torch.Tensor, k: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The means of the blocks of queries and keys, in float32 at least, with as many heads."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1) if k.shape[1] else k
    return _means(q, block), _means(k, block)


def _means(x: torch.Tensor, block: int) -> torch.Tensor:
    x = x.detach().to(torch.promote_types(x.dtype, torch.float32))
    length = x.shape[2]
    padded = torch.nn.functional.pad(x, (0, 0, 0, -length % block)).unflatten(2, (-1, block))
    first = torch.arange(0, length, block, device=x.device)
    count = (first + block).clamp(max=length) - first
    return padded.sum(3) / count[:, None]

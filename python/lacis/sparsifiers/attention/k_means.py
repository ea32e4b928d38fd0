# SPDX-License-Identifier: Apache-2.0
"""Blocks of queries and keys meet where they belong to one cluster."""

from __future__ import annotations

import torch

from .rule import PatternRule, at_least_zero, positive
from .top_k_blocks import means_of_blocks


class KMeans(PatternRule):
    """Each block of queries meets the `k` blocks of keys nearest to the centroid of its own cluster.

    Routing attention (Roy et al. 2021) over blocks: the means of the blocks are brought to length 1, `clusters`
    centroids begin with key blocks at equal distances and move `iterations` times to the mean of the blocks nearest
    to them, for each batch and head anew. The choice has no gradient; equal input, equal choice.

    >>> q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]]).reshape(1, 1, 3, 2)
    >>> sorted(KMeans(2, 2, block=1).blocks(q, q)[0, 0, 0].tolist())
    [0, 2]
    """

    def __init__(self, clusters: int, k: int, *, iterations: int = 3, block: int = 64):
        positive(clusters=clusters, k=k, block=block)
        at_least_zero(iterations=iterations)
        self.clusters, self.k, self.iterations, self.block = clusters, k, iterations, block

    def blocks(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        unit = lambda x: torch.nn.functional.normalize(x, dim=-1)
        queries, keys = map(unit, means_of_blocks(q, k, self.block))
        points, count = torch.cat([queries, keys], 2), keys.shape[2]
        if not count:
            return torch.zeros(*queries.shape[:3], 0, dtype=torch.int64, device=q.device)
        begin = torch.arange(self.clusters, device=q.device) * count // self.clusters
        centroids = keys[:, :, begin]
        for _ in range(self.iterations):
            nearest = (points @ centroids.transpose(-1, -2)).argmax(-1, keepdim=True)
            mine = (nearest == torch.arange(self.clusters, device=q.device)).to(points.dtype)
            moved = mine.transpose(-1, -2) @ points
            alone = mine.sum(-2)[..., None] == 0  # a cluster without blocks stays where it is
            centroids = unit(torch.where(alone, centroids, moved))
        best = (centroids @ keys.transpose(-1, -2)).topk(min(self.k, count), dim=-1, sorted=False).indices
        own = (queries @ centroids.transpose(-1, -2)).argmax(-1)
        return best.gather(2, own[..., None].expand(-1, -1, -1, best.shape[-1]))

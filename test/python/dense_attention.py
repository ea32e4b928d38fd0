# SPDX-License-Identifier: Apache-2.0
"""Dense attention with masks in float64, and small operands for it."""

import math

import torch

B, H, S, T, D, E = 2, 4, 9, 11, 5, 3


def tensors(heads=H, q=S, k=T, batch=B, dtype=torch.float64, seed=1):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, H, q, D), (batch, heads, k, D), (batch, heads, k, E)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def grid(q=S, k=T, batch=B):
    """b, h, i, j of all places, each to be broadcast to [B, H, q, k]."""
    shape = [(-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, -1, 1), (1, 1, 1, -1)]
    return [torch.arange(n).reshape(s) for n, s in zip((batch, H, q, k), shape)]


def dense(q, k, v, kept, scale=None, change=None, sink=None):
    """The output and the log of the sums; rows without an entry are 0 and -infinity."""
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(H // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(2, 3) * (1 / math.sqrt(D) if scale is None else scale)
    scores = scores if change is None else change(scores)
    scores = torch.where(kept.expand_as(scores), scores, -math.inf)
    if sink is not None:
        scores = torch.cat([scores, sink.double()[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
    lse = scores.logsumexp(-1)
    empty = lse.isneginf()[..., None]
    shares = torch.where(empty, 0, torch.where(empty, 0, scores).softmax(-1))[..., : k.shape[2]]
    return shares @ v, lse


def drawn(*shape, density=0.4, seed=3):
    kept = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < density
    kept[..., 1, :] = False
    return kept


def agree(found, expected, **tolerance):
    for mine, other in zip(found, expected):
        torch.testing.assert_close(mine, other.to(mine.dtype), **tolerance)

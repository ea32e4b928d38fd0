# SPDX-License-Identifier: Apache-2.0
"""Rules of attention that follow the queries and keys: which blocks they choose."""

import pytest
import torch
from dense_attention import agree, dense, tensors

import lacis


def test_blocks_that_follow_the_data():
    q, k, v = tensors(2, q=18, k=22)
    mean = lambda x: torch.stack([part.mean(2) for part in x.split(4, 2)], 2)
    scores = mean(q) @ mean(k.repeat_interleave(2, 1)).transpose(2, 3)
    chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(3, scores.topk(2).indices, True)
    rule = lacis.TopKBlocks(2, block=4)
    lists = rule.blocks(q, k)
    assert lists.shape == (2, 4, 5, 2) and torch.equal(torch.zeros_like(chosen).scatter(3, lists, True), chosen)
    kept = chosen.repeat_interleave(4, 2).repeat_interleave(4, 3)[:, :, :18, :22]
    agree(lacis.attention(q, k, v, rule, return_lse=True, target="eager"), dense(q, k, v, kept))
    every = lacis.attention(q, k, v, lacis.TopKBlocks(99, block=4), return_lse=True, target="eager")
    agree(every, dense(q, k, v, torch.ones(18, 22, dtype=torch.bool)))
    least = lacis.TopKBlocks(2, score=lambda a, b: -a @ b.transpose(2, 3), block=4).blocks(q, k)
    assert torch.equal(least.sort(-1).values, (-scores).topk(2).indices.sort(-1).values)


def test_clusters_of_blocks():
    """Four directions, each block all of one: blocks meet those of their own."""
    generator = torch.Generator().manual_seed(0)
    kinds = torch.tensor([0, 1, 2, 3, 2, 0, 1, 3])
    x = torch.eye(4).repeat_interleave(2, 0)[kinds * 2].repeat_interleave(4, 0)[None, None]
    x = x + 0.01 * torch.randn(1, 2, 32, 4, generator=generator)
    rule = lacis.KMeans(8, 2, block=4)
    lists = rule.blocks(x, x)
    assert torch.equal(lists, rule.blocks(x, x)) and bool((kinds[lists] == kinds[:, None]).all())


@pytest.mark.parametrize("threshold, count", [(0.2, 3), (0.9, 2), (-1, 99)])
def test_blocks_that_point_the_same_way(threshold, count):
    q, k, v = tensors(2, q=18, k=22)
    mean = lambda x: torch.stack([part.mean(2) for part in x.split(4, 2)], 2)
    means = [torch.nn.functional.normalize(mean(x), dim=-1) for x in (q, k.repeat_interleave(2, 1))]
    cosines = means[0] @ means[1].mT
    order = cosines.argsort(-1, descending=True)
    place = torch.zeros_like(order).scatter(3, order, torch.arange(6).expand_as(order))
    chosen = (place == 0) | ((place < count) & (cosines >= threshold))
    rule = lacis.Similarity(threshold, k=count, block=4)
    kept = chosen.repeat_interleave(4, 2).repeat_interleave(4, 3)[:, :, :18, :22]
    agree(lacis.attention(q, k, v, rule, return_lse=True, target="eager"), dense(q, k, v, kept))


def test_similarity_of_nothing_is_seen():
    """Zeros are like nothing, and have a block in any case; NaN is not left out."""
    q = torch.zeros(1, 1, 8, 4)
    assert (lacis.Similarity(block=4).blocks(q, q)[..., 0] >= 0).all()
    q[0, 0, 0, 0] = torch.nan
    assert lacis.attention(q, q, torch.ones_like(q), lacis.Similarity(block=4), target="eager")[0, 0, 0].isnan().all()


def test_dynamic_rules_have_no_layout():
    with pytest.raises(lacis.ScheduleError, match="follows the queries and keys; call blocks"):
        lacis.TopKBlocks(2).layout(1, 4, 4, 2)

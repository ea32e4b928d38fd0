# SPDX-License-Identifier: Apache-2.0
"""Blocks of keys that a model selects for itself, as NSA and VSA do, beside their selection written in torch."""

import pytest
import torch
from dense_attention import agree
from strategies import mostly_long
from test_attention_dynamic import dense, mask_of
from test_attention_fused import gradients

import lacis

BATCH, HEADS, KEYS, TOKENS, DEPTH, SIDE = 2, 8, 2, 230, 16, 64
WAYS = mostly_long(["eager", "auto"], "eager")


def operands():
    options = {"generator": torch.Generator("cpu").manual_seed(0), "dtype": torch.float64, "device": "cpu"}
    draw = lambda heads: torch.randn(BATCH, heads, TOKENS, DEPTH, **options)
    return [draw(heads).to(torch.get_default_device()).requires_grad_() for heads in (HEADS, KEYS, KEYS)]


def means(x):
    """Of each block of tokens, the last maybe in part."""
    return torch.stack([part.mean(-2) for part in x.split(SIDE, 2)], 2)


@pytest.mark.parametrize("target", WAYS)
def test_native_sparse_attention(target):
    """Yuan et al., 2025: each query of a group of heads selects blocks of 64 keys, by the shares that blocks have of
    its attention to their means, summed over the group; the first one, its own and the one before are always there."""
    q, k, v = operands()
    blocks = -(-TOKENS // SIDE)
    own = torch.arange(TOKENS)[:, None] // SIDE
    number = torch.arange(blocks)
    with torch.no_grad():
        grouped = q.unflatten(1, (KEYS, -1))
        scores = torch.einsum("bgrid,bgnd->bgrin", grouped, means(k)) * DEPTH**-0.5
        scores = scores.masked_fill(number > own, -torch.inf)
        weight = scores.softmax(-1).sum(2)
        weight = weight.masked_fill((number == 0) | (number == own) | (number == own - 1), torch.inf)
        weight = weight.masked_fill(number > own, -1)
        chosen = torch.zeros(weight.shape, dtype=torch.bool).scatter(-1, weight.topk(3).indices, True) & (number <= own)
    layout = chosen.repeat_interleave(HEADS // KEYS, 1)
    found = lacis.attention(q, k, v, layout, causal=True, return_lse=True, target=target)
    kept = layout.repeat_interleave(SIDE, 3)[..., :TOKENS] & torch.ones(TOKENS, TOKENS).tril().bool()
    expected = dense(q, k, v, kept)
    agree(found, expected)
    agree(gradients(found, (q, k, v)), gradients(expected, (q, k, v)))


@pytest.mark.parametrize("target", WAYS)
def test_video_sparse_attention(target):
    """Zhang et al., 2025: each head and block of queries takes the blocks of keys whose means score highest with its
    own; what comes of means alone is added, each by a gate."""
    q, k, v = operands()
    gate, coarse_gate = (torch.linspace(0.2, 1, DEPTH, dtype=torch.float64) * n for n in (1, 2))

    def scored(k):
        return means(q) @ means(k.repeat_interleave(HEADS // KEYS, 1)).mT * DEPTH**-0.5

    lists = scored(k).topk(2).indices.int()
    kept = mask_of(lists, BATCH, HEADS, (TOKENS, TOKENS), SIDE)

    def both(attend, pattern, **options):
        out, lse = attend(q, k, v, pattern, **options)
        coarse = scored(k).softmax(-1) @ means(v.repeat_interleave(HEADS // KEYS, 1))
        return gate * out + coarse_gate * coarse.repeat_interleave(SIDE, 2)[:, :, :TOKENS], lse

    found = both(lacis.attention, lists, return_lse=True, target=target)
    expected = both(dense, kept)
    agree(found, expected)
    agree(gradients(found, (q, k, v)), gradients(expected, (q, k, v)))

# SPDX-License-Identifier: Apache-2.0
"""Attention on tensor cores reads tensors of any strides where they lie; it copies what the copy engine cannot address."""

import poison
import pytest
import torch
from test_attention_dynamic_cuda import launches

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)
BATCH, HEADS, TOKENS, DEPTH = 2, 4, 512, 64


def tokens_first():
    return [drawn(BATCH, TOKENS, HEADS, DEPTH).transpose(1, 2) for _ in range(3)]


def side_by_side():
    return [x.transpose(1, 2) for x in drawn(BATCH, TOKENS, 3, HEADS, DEPTH).unbind(2)]


def fewer_heads_of_keys():
    q, k, v = side_by_side()
    return [q, k[:, ::2], v[:, 1::2]]


def expanded():
    q, k, v = tokens_first()
    return [q, k[:, :1].expand_as(q), v[:1].expand_as(q)]


def rows_at_odd_places():
    return [drawn(BATCH, TOKENS, HEADS, DEPTH + 1)[..., 1:].transpose(1, 2) for _ in range(3)]


def drawn(*shape):
    return torch.randn(shape, device="cuda").bfloat16()


@pytest.mark.parametrize("make", [tokens_first, side_by_side, fewer_heads_of_keys, expanded, rows_at_odd_places])
def test_strides(make):
    given, rule, slope = make(), lacis.Causal(block=64), tokens_first()[0]
    found = []
    for whole in (False, True):
        leaves = [(x.contiguous() if whole else x).detach().requires_grad_() for x in given]
        with poison.allocations():
            out, lse = lacis.attention(*leaves, rule, return_lse=True)
            found.append([out, lse, *torch.autograd.grad(out, leaves, slope.contiguous() if whole else slope)])
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("make", [tokens_first, side_by_side, fewer_heads_of_keys])
def test_nothing_is_copied(make):
    given, rule = make(), lacis.Causal(block=64)
    with torch.no_grad():
        lacis.attention(*given, rule)
        names = launches(lambda: lacis.attention(*given, rule))
    assert len(names) == 1 and "attention" in names[0], names

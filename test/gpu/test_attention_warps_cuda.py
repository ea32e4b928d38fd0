# SPDX-License-Identifier: Apache-2.0
"""Attention by the warps of sm_80 and later, as GPUs without tiles of their own run it: against float64, bit-equal."""

import pytest
import test_attention_small_blocks_cuda as small
import test_attention_tails_cuda as tails
import torch
from test_chain_tiles_cuda import BLOCKS, attend_lse, blocks, check_sums_too, operands
from test_tiles_ampere_cuda import TARGET

import lacis
from lacis.attentions import fused
from lacis.nn.watched import watching
from lacis.runtime import chain

MAJOR = torch.cuda.get_device_capability()[0] if torch.cuda.is_available() else 0
pytestmark = [
    pytest.mark.skipif(MAJOR < 8, reason="needs a GPU of compute capability 8.0 or more"),
    pytest.mark.usefixtures("by_warps"),
]


@pytest.fixture
def by_warps(monkeypatch):
    """Chains are compiled for `TARGET`, by functions that have no kernels yet."""
    resolve = chain.resolve_target
    own = lambda target, device, *rest: TARGET if device.type == "cuda" else resolve(target, device, *rest)
    monkeypatch.setattr(chain, "resolve_target", own)
    monkeypatch.setattr(fused, "_KNOWN", {})
    monkeypatch.setattr(attend_lse, "_kernels", {})


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("depth, wide", [(64, 64), (128, 128), (64, 128), (32, 16), (192, 256)])
@pytest.mark.parametrize("sides", BLOCKS)
def test_attention_and_its_sums(sides, depth, wide, dtype):
    q, k, v = (x.cuda() for x in operands(384, 256, depth, wide, dtype, heads=3))
    mask = blocks(384, 256, sides).cuda()
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[sides])
    assert "mma.sync" in attend_lse.compiled(q, k, v, pattern).asm["ptx"]
    check_sums_too(q, k, v, mask, pattern)


def test_what_runs_are_tiles_of_warps():
    q, k, v = (torch.randn(1, 2, 256, 64, device="cuda").half().requires_grad_() for _ in range(3))
    with watching() as seen:
        lacis.attention(q, k, v, lacis.Causal(block=64)).sum().backward()
    (kernels,) = seen
    assert set(kernels) == {"forward", "grad_query", "grad_key_value"}
    assert all(each.target == TARGET and "mma.sync" in each.asm["ptx"] for each in kernels.values())


@pytest.mark.parametrize("width", [40, 64, 128, 192])
@pytest.mark.parametrize("lengths", [(1000, 1000), (333, 1001), (65, 3)])
@pytest.mark.parametrize("rule", [lacis.Causal(block=64), lacis.BigBird(block=128)], ids=["causal", "bigbird"])
def test_lengths_inside_of_blocks(rule, lengths, width):
    tails.check(lengths, (4, 2), rule, {}, width=width)


@pytest.mark.parametrize("side, width", [(8, 64), (16, 64), (16, 128), (32, 128)])
@pytest.mark.parametrize("lengths", [(512, 768), (332, 1004)])
def test_heads_of_their_own(side, width, lengths):
    layout = small.layout(4, *lengths, side)
    tails.check(lengths, (4, 2), small.Blocks(side, layout), {"causal": True}, width=width)


@pytest.mark.parametrize("draw", [tails.biased, tails.padded, tails.of_keys])
@pytest.mark.parametrize("side", [16, 64])
def test_scores_that_read_tensors(draw, side):
    options, tensors = draw(200, 332)
    rule = lacis.Local(100, block=64) if side == 64 else small.Blocks(side, small.layout(4, 200, 332, side))
    tails.check((200, 332), (4, 4), rule, options, tensors)


def test_dropout():
    tails.check((512, 512), (2, 2), lacis.Local(100, block=64), {"dropout": 0.2, "seed": 7})


def test_few_queries():
    """Parts of the keys, of whose rows of 64 three queries of four heads have twelve."""
    tails.test_few_queries(4097)

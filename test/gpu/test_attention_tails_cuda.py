# SPDX-License-Identifier: Apache-2.0
"""Attention on tensor cores where lengths end inside of a block, and of sequences side by side, against float64."""

import poison
import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)


def near(got, want):
    return (got.double() - want.double()).norm() <= 2**-7 * want.double().norm()


def check(lengths, heads, pattern, options, tensors=(), batch=2, width=64):
    """One kernel forward, and the same bits again; `tensors` have gradients, too."""
    torch.manual_seed(0)
    sizes = zip((heads[0], heads[1], heads[1]), (lengths[0], lengths[1], lengths[1]))
    inputs = [torch.randn(batch, h, n, width, device="cuda").bfloat16() for h, n in sizes]
    slope, found = torch.randn_like(inputs[0]), []
    for dtype in (torch.bfloat16, torch.float64):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        with poison.allocations(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            out = lacis.attention(*leaves, pattern, **options)
        found.append([out.detach(), *torch.autograd.grad(out, [*leaves, *tensors], slope.to(dtype))])
        if dtype == torch.bfloat16:
            assert sum(event.count for event in seen.key_averages() if "attention" in event.key) == 1
            poison.flush_cache()
            out = lacis.attention(*leaves, pattern, **options)
            again = [out.detach(), *torch.autograd.grad(out, [*leaves, *tensors], slope.to(dtype))]
            assert all(map(torch.equal, found[0], again))
    assert all(near(got, want) for got, want in zip(*found))


@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("lengths", [(1000, 1000), (333, 1001), (1023, 130), (65, 3)])
@pytest.mark.parametrize("rule", [lacis.Causal(block=64), lacis.Local(100, block=64), lacis.BigBird(block=128)])
def test_lengths_inside_of_blocks(rule, lengths, width):
    check(lengths, (4, 2), rule, {}, width=width)


def biased(rows, keys):
    tensor = torch.randn(1, 4, rows, keys, device="cuda").bfloat16()
    return {"bias": tensor}, []


def padded(rows, keys):
    return {"key_padding": torch.arange(keys, device="cuda") < torch.tensor([[keys], [keys // 2]], device="cuda")}, []


def of_keys(rows, keys):
    tensor = torch.randn(1, 4, 1, keys, device="cuda").requires_grad_()
    return {"bias": tensor}, [tensor]


@pytest.mark.parametrize("draw", [biased, padded, of_keys])
@pytest.mark.parametrize("lengths", [(1000, 1000), (200, 331)])
def test_scores_that_read_tensors(draw, lengths):
    options, tensors = draw(*lengths)
    check(lengths, (4, 4), lacis.Local(100, block=64), options, tensors)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window": 50}])
@pytest.mark.parametrize("own", [False, True], ids=["of both", "of each"])
def test_sequences(own, options):
    starts, starts_k = ([0, 100, 100, 101, 612, 999], [0, 64, 70, 70, 500, 1000])
    starts, starts_k = (torch.tensor(x, device="cuda", dtype=torch.int32) for x in (starts, starts_k))
    options = options | {"cu_seqlens": starts} | ({"cu_seqlens_k": starts_k} if own else {})
    every = torch.ones(1, 16, 16, device="cuda").bool()
    check((1000, 1000), (4, 2), every, options, batch=1)


@pytest.mark.parametrize("keys", [1000, 4097])
def test_few_queries(keys):
    """As in decoding: the last part of the keys ends inside of a block."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, h, n, 128, device="cuda").bfloat16() for h, n in ((8, 3), (2, keys), (2, keys)))
    kept = lacis.Pattern.from_mask(torch.ones(3, keys, device="cuda").bool(), lacis.Bsr(3, 64))
    bias = torch.randn(2, 8, 3, keys, device="cuda").bfloat16()
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        got = lacis.attention(q, k, v, kept, bias=bias)
    assert sum(event.count for event in seen.key_averages() if "merge_parts" in event.key) == 1
    with torch.no_grad():
        assert near(got, lacis.attention(*(x.double() for x in (q, k, v)), kept, bias=bias))

# SPDX-License-Identifier: Apache-2.0
"""Attention on tensor cores whose scores read tensors at heads, queries, keys, and at pairs of them, with gradients."""

import poison
import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)
BATCH, HEADS, TOKENS = 2, 4, 512


def slopes():
    """Of a distance whose mean in a row is about 0: its gradient is no small rest of large parts."""
    slope = torch.rand(HEADS, device="cuda").requires_grad_()
    return {"score": lambda s, b, h, i, j: s + slope[h] * ((j - i) % 64 - 32) * 0.125}, [slope]


def documents():
    number = torch.arange(TOKENS, device="cuda").div(100).floor().long().expand(BATCH, TOKENS)
    return {"mask": lambda b, h, i, j: number[b, i] == number[b, j]}, []


def key_padding():
    return {"key_padding": torch.arange(TOKENS, device="cuda") < torch.tensor([[TOKENS], [333]], device="cuda")}, []


def lengths():
    length = torch.tensor([TOKENS, 301], device="cuda")
    return {"mask": lambda b, h, i, j: j < length[b]}, []


def bias():
    """One that begins inside of a chunk of 16 bytes."""
    tensor = torch.randn(HEADS * TOKENS + 1, device="cuda")[1:].reshape(1, HEADS, 1, TOKENS).requires_grad_()
    return {"bias": tensor}, [tensor]


def temperatures():
    each = torch.rand(BATCH, TOKENS, device="cuda").add(0.5).requires_grad_()
    return {"score": lambda s, b, h, i, j: s * each[b, i]}, [each]


def pairs():
    """One bias for all batches, in the type of q."""
    tensor = torch.randn(1, HEADS, TOKENS, TOKENS, device="cuda").bfloat16().requires_grad_()
    return {"bias": tensor}, [tensor]


def whole_bias():
    """Of each batch, in float32, beside a number of each query; it begins inside of a chunk of 16 bytes."""
    tensor = torch.randn(BATCH * HEADS * TOKENS * TOKENS + 1, device="cuda")[1:].reshape(BATCH, HEADS, TOKENS, TOKENS)
    each = torch.rand(BATCH, TOKENS, device="cuda").add(0.5).requires_grad_()
    return {"bias": tensor, "score": lambda s, b, h, i, j: s * each[b, i]}, [each]


def mask_of_pairs():
    """A bool tensor that all heads share."""
    kept = torch.rand(BATCH, TOKENS, TOKENS, device="cuda") < 0.8
    return {"mask": lambda b, h, i, j: kept[b, i, j]}, []


def distances():
    """A table of relative positions, from its end where the key is behind the query."""
    table = torch.randn(HEADS, TOKENS, device="cuda").requires_grad_()
    return {"score": lambda s, b, h, i, j: s + table[h, i - j]}, [table]


def soft_cap():
    return {"score": lambda s, b, h, i, j: 2 * torch.tanh(s / 2)}, []


def clipped():
    table = torch.randn(17, device="cuda").bfloat16().requires_grad_()
    return {"score": lambda s, b, h, i, j: s * table[(i - j).clamp(-8, 8) + 8]}, [table]


def sink():
    tensor = torch.randn(HEADS, device="cuda").requires_grad_()
    return {"sink": tensor}, [tensor]


@pytest.mark.parametrize("pattern", [lacis.Causal(block=64), lacis.BigBird(block=64)], ids=["causal", "bigbird"])
@pytest.mark.parametrize("keys", [4, 2])
@pytest.mark.parametrize(
    "draw",
    [
        slopes,
        documents,
        key_padding,
        lengths,
        bias,
        temperatures,
        pairs,
        whole_bias,
        mask_of_pairs,
        distances,
        soft_cap,
        clipped,
        sink,
    ],
)
def test_scores_that_read_tensors(draw, keys, pattern):
    torch.manual_seed(0)
    options, tensors = draw()
    inputs = [torch.randn(BATCH, heads, TOKENS, 64, device="cuda").bfloat16() for heads in (HEADS, keys, keys)]
    slope, found = torch.randn(BATCH, HEADS, TOKENS, 64, device="cuda").bfloat16(), []
    for dtype in (torch.bfloat16, torch.float64):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        with poison.allocations(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            out = lacis.attention(*leaves, pattern, **options)
        found.append([out.detach(), *torch.autograd.grad(out, [*leaves, *tensors], slope.to(dtype))])
        if dtype == torch.bfloat16:
            assert sum(event.count for event in seen.key_averages() if "attention" in event.key) == 1
            assert all(map(torch.equal, found[0], [out.detach(), *again(leaves, tensors, pattern, options, slope)]))
    for got, want in zip(*found):
        assert (got.double() - want.double()).norm() <= 2**-7 * want.double().norm()


def again(leaves, tensors, pattern, options, slope):
    poison.flush_cache()
    return torch.autograd.grad(lacis.attention(*leaves, pattern, **options), [*leaves, *tensors], slope)


def test_whole_numbers_are_looked_at_once():
    """So a CUDA graph captures a call that follows another one, and reads what they are then."""
    number = torch.arange(TOKENS, device="cuda").div(100).floor().long().expand(BATCH, TOKENS).contiguous()
    mask = lambda b, h, i, j: number[b, i] == number[b, j]
    q, k, v = (torch.randn(BATCH, HEADS, TOKENS, 64, device="cuda").bfloat16() for _ in range(3))
    attend = lambda: lacis.attention(q, k, v, lacis.Causal(block=64), mask=mask)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        expected = attend()
        with torch.cuda.graph(graph):
            found = attend()
    graph.replay()
    assert torch.equal(found, expected)

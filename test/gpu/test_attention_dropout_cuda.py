# SPDX-License-Identifier: Apache-2.0
"""Dropout of attention on tensor cores: the bits of statements in both passes, and in a graph that is replayed."""

import poison
import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)
BATCH, HEADS, TOKENS, RATE = 2, 4, 512, 0.25
PATTERNS = {
    "causal": lambda: lacis.Causal(block=64),
    "bigbird of 128": lambda: lacis.BigBird(block=128, num_random_blocks=1),
    "window of 32": lambda: lacis.Local(90, block=32),
    "own blocks": lambda: torch.rand(HEADS, 8, 8, device="cuda") < 0.6,
}


def run(leaves, pattern, slope, **how):
    out = lacis.attention(*leaves, pattern, dropout=RATE, **how)
    return [out.detach(), *torch.autograd.grad(out, leaves, slope.to(out.dtype))]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("keys, depth", [(4, 64), (2, 128)])
@pytest.mark.parametrize("name", PATTERNS)
def test_tiles_drop_what_statements_drop(name, keys, depth, dtype):
    torch.manual_seed(0)
    pattern, seed = PATTERNS[name](), torch.randint(2**62, (), device="cuda")
    inputs = [torch.randn(BATCH, heads, TOKENS, depth, device="cuda").to(dtype) for heads in (HEADS, keys, keys)]
    slope = torch.randn(BATCH, HEADS, TOKENS, depth, device="cuda")
    leaves = [x.clone().requires_grad_() for x in inputs]
    with poison.allocations(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        got = run(leaves, pattern, slope.to(dtype), seed=seed)
    for kernel in ("_attention", "_rows", "_columns"):
        assert sum(event.count for event in seen.key_averages() if event.key.startswith(kernel)) == 1, kernel
    want = run([x.double().requires_grad_() for x in inputs], pattern, slope, seed=seed)
    for one, other in zip(got, want):
        assert (one.double() - other).norm() <= (2**-7 if dtype == torch.bfloat16 else 2**-9) * other.norm()
    for _ in range(20):
        poison.flush_cache()
        assert all(map(torch.equal, got, run(leaves, pattern, slope.to(dtype), seed=seed)))


def test_bits_of_a_cpu():
    """What is left of shares, seen through values that are the identity."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 2, HEADS, 128, 64) / 2
    rule, values, left = lacis.Causal(block=64), torch.eye(128).expand(2, HEADS, 128, 128), []
    for device, dtype in (("cpu", torch.float64), ("cuda", torch.float64), ("cuda", torch.bfloat16)):
        given = [x.to(device, dtype) for x in (q, k, values)]
        left.append((lacis.attention(*given, rule, dropout=RATE, seed=2**40 + 7) != 0).cpu())
    assert torch.equal(left[0], left[1]) and torch.equal(left[0], left[2])
    assert 0.2 < 1 - left[0].sum() / (2 * HEADS * 128 * 129 / 2) < 0.3


def test_a_graph_draws_anew_where_its_seed_is_another():
    torch.manual_seed(0)
    leaves = [torch.randn(1, 2, 256, 64, device="cuda").bfloat16().requires_grad_() for _ in range(3)]
    pattern, slope, seed = lacis.Causal(block=64), torch.randn(1, 2, 256, 64, device="cuda").bfloat16(), torch.tensor(3)
    seed = seed.cuda()
    wanted = {number: run(leaves, pattern, slope, seed=number) for number in (3, 2**50)}
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run(leaves, pattern, slope, seed=seed)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = run(leaves, pattern, slope, seed=seed)
    for number, want in wanted.items():
        seed.fill_(number)
        graph.replay()
        assert all(map(torch.equal, made, want))
    assert not torch.equal(wanted[3][0], wanted[2**50][0])


def test_a_drawn_seed_is_the_generators():
    """In a graph, too, whose replays draw anew."""
    q, k, v = (torch.randn(1, 2, 256, 64, device="cuda").bfloat16() for _ in range(3))
    attend = lambda: lacis.attention(q, k, v, kept, dropout=0.5)
    kept = lacis.Causal(block=64)
    torch.manual_seed(5)
    first, second = attend(), attend()
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(first, attend())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = attend()
    graph.replay()
    before = made.clone()
    graph.replay()
    assert not torch.equal(before, made)

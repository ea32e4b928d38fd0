# SPDX-License-Identifier: Apache-2.0
"""Patterns made on the device for each call: no wait, few launches, and CUDA graphs that follow other numbers."""

import contextlib

import poison
import pytest
import torch

import lacis
from lacis.attentions.lists import columns_of, pattern_of_lists
from lacis.attentions.walks import by_columns

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)
BATCH, HEADS, KEYS, ROWS, COLUMNS, DEPTH, SIDE = 2, 4, 2, 512, 640, 64, 64


class Own(lacis.PatternRule):
    """Lists of a user's, unsorted, with -1 between them, which follow the numbers of q."""

    def blocks(self, q, k):
        rows, columns = self.grid(q.shape[2], k.shape[2], self.block)
        sign = (q[:, :, ::SIDE, :3] > 0).int()
        numbers = torch.arange(rows, device=q.device, dtype=torch.int32)[:, None] * 3
        lists = (numbers + sign * torch.tensor([5, 1, 2], dtype=torch.int32, device="cuda")) % columns
        return torch.where(sign.flip(-1) + numbers == 0, -1, lists)


KEPT = {"top": lacis.TopKBlocks(3), "clusters": lacis.KMeans(3, 2), "alike": lacis.Similarity(0.1, k=4)}
RULES = {**KEPT, "own": Own()}


def operands(seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    sizes = (HEADS, ROWS), (KEYS, COLUMNS), (KEYS, COLUMNS)
    draw = lambda *size: torch.randn(BATCH, *size, DEPTH, generator=generator, device="cuda").bfloat16()
    return [draw(*size).requires_grad_() for size in sizes], draw(HEADS, ROWS)


def both(inputs, slope, pattern):
    out, lse = lacis.attention(*inputs, pattern, return_lse=True)
    return out, lse, *torch.autograd.grad(out, inputs, slope)


def exact(inputs, slope, lists):
    """By float64, on the blocks that lists name."""
    count = COLUMNS // SIDE
    lists = lists.long().expand(BATCH, -1, -1, -1).repeat_interleave(HEADS // lists.shape[1], 1)
    lists = torch.where((lists < 0) | (lists >= count), count, lists)
    kept = torch.zeros(BATCH, HEADS, ROWS // SIDE, count + 1, device="cuda").scatter_(3, lists, 1.0)
    kept = kept[..., :count].bool().repeat_interleave(SIDE, 2).repeat_interleave(SIDE, 3)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    q, k, v = wide[0], *(x.repeat_interleave(HEADS // KEYS, 1) for x in wide[1:])
    scores = (q @ k.mT / DEPTH**0.5).masked_fill(~kept, -torch.inf)
    some = kept.any(-1, keepdim=True)
    out = torch.where(some, scores, 0).softmax(-1) * some @ v
    return out, scores.logsumexp(-1), *torch.autograd.grad(out, wide, slope.double())


def check(found, want):
    for mine, other in zip(found, want):
        there = other.isfinite()
        assert torch.equal(there, mine.isfinite())
        mine, other = mine.double()[there], other[there]
        assert (mine - other).norm() <= 2**-6 * other.norm()


@pytest.mark.parametrize("name", RULES)
def test_both_passes(name):
    rule, (inputs, slope) = RULES[name], operands()
    with poison.allocations():
        poison.shared_memory()
        found = both(inputs, slope, rule)
    check(found, exact(inputs, slope, rule.blocks(*inputs[:2])))
    assert all(map(torch.equal, found, both(inputs, slope, rule)))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_lists_of_any_kind(dtype):
    """Unsorted, twice, -1 in the middle, no block at all, numbers beyond the last."""
    lists = torch.randint(-3, COLUMNS // SIDE + 2, (1, KEYS, ROWS // SIDE, 7), device="cuda").to(dtype)
    lists[:, 0, 2] = -1
    inputs, slope = operands(1)
    check(both(inputs, slope, lists), exact(inputs, slope, lists))


@contextlib.contextmanager
def no_waits():
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", KEPT)
def test_nobody_waits(name):
    inputs, slope = operands()
    both(inputs, slope, RULES[name])
    with no_waits():
        both(inputs, slope, RULES[name])


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("learns", [False, True])
def test_a_graph_follows_other_numbers(name, learns):
    rule, (inputs, slope) = RULES[name], operands()
    run = lambda: both(inputs, slope, rule) if learns else lacis.attention(*inputs, rule, return_lse=True)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.set_grad_enabled(learns):
        with torch.cuda.stream(stream):
            for _ in range(2):
                run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = run()
        for seed in (5, 6):
            others, _ = operands(seed)
            with torch.no_grad():
                for one, other in zip(inputs, others):
                    one.copy_(other)
            graph.replay()
            found = [x.clone() for x in kept]
            assert all(map(torch.equal, found, run()))
            with torch.enable_grad():
                check(found, exact(inputs, slope, rule.blocks(*inputs[:2])))


def launches(call) -> list[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    return [e.name for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]


def test_few_launches():
    """Three at the most between the scores and attention, and none more for the gradients."""
    (q, *keys), slope = operands()
    inputs = [q, *(x.detach().repeat_interleave(HEADS // KEYS, 1).requires_grad_() for x in keys)]
    rule, scores = RULES["top"], []
    spied = lacis.TopKBlocks(3, score=lambda a, b: scores.append(a @ b.mT) or scores[-1])
    both(inputs, slope, rule), both(inputs, slope, spied)
    with torch.no_grad():
        names = launches(lambda: lacis.attention(*inputs, rule))
        assert sum("attention" in name for name in names) == 1 and sum("block_lists" in name for name in names) == 1
        found = scores[-1]
        choice = launches(lambda: found.topk(3, sorted=False))
        before = launches(lambda: rule.blocks(*inputs[:2]))
        assert len(choice) + 1 <= 3 and len(names) == len(before) + 2, names
    out = []
    names = launches(lambda: out.append(lacis.attention(*inputs, rule)))
    assert sum("block_lists" in name for name in names) == 1
    names = launches(lambda: torch.autograd.grad(out[0], inputs, slope))
    assert not any("lists" in name or "sort" in name.lower() or "searchsorted" in name for name in names), names


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("count", [10, 7])  # 7 columns end inside of 16 bytes
def test_columns_made_alone(dtype, count):
    """As in the same launch, and as on a CPU."""
    lists = torch.randint(-2, count + 2, (2, KEYS, 5, 3), device="cuda").to(dtype)
    given = (2, HEADS), (5 * SIDE, count * SIDE), (SIDE, SIDE)
    pattern = pattern_of_lists(lists, *given, columns=True)
    host = pattern_of_lists(lists.cpu(), *given, columns=True)
    assert torch.equal(pattern.storage["crd2"].cpu(), host.storage["crd2"])
    want = by_columns(host).to_mask()
    assert torch.equal(by_columns(pattern).to_mask().cpu(), want)
    assert torch.equal(columns_of(pattern).to_mask().cpu(), want)

# SPDX-License-Identifier: Apache-2.0
"""Few queries over many keys on tensor cores: one kernel on parts of the keys, against float64."""

import poison
import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)


def layout(blocks, share=0.5):
    kept = torch.rand(1, 1, blocks) < share
    kept[..., 0] = True
    return kept


def dense(q, k, v, kept, change=lambda s: s):
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k.double(), v.double()))
    scores = change(q.double() @ k.mT * q.shape[-1] ** -0.5).masked_fill(~kept, -torch.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


def kernels(call):
    """What ran on the device, and the result."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        found = call()
        torch.cuda.synchronize()
    return [e.name for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA], found


def launched(call):
    names, found = kernels(call)
    assert sum("attention" in name for name in names) == sum("merge_parts" in name for name in names) == 1, names
    return found


@pytest.mark.parametrize("heads, queries", [(8, 1), (8, 4), (2, 64)])
def test_two_kernels_are_launched(heads, queries):
    """Queries are read where they lie; one kernel merges the parts in the type of the output."""
    q, k, v = (torch.randn(2, h, n, 128, device="cuda").bfloat16() for h, n in ((heads, queries), (2, 8192), (2, 8192)))
    every = torch.ones(queries, 8192, device="cuda").bool()
    pattern = lacis.Pattern.from_mask(every, lacis.Bsr(queries, 64))
    attend = lambda: lacis.attention(q, k, v, pattern)
    attend()
    names, out = kernels(attend)
    assert len(names) == 2 and "attention" in names[0] and "merge_parts" in names[1], names
    want, _ = dense(q, k, v, torch.ones((), device="cuda").bool())
    assert (out.double() - want).norm() <= 2**-7 * want.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("parts, rows, width", [(2, 3, 128), (64, 5, 64), (300, 2, 40), (7, 1, 200)])
def test_parts_are_merged(parts, rows, width, dtype):
    torch.manual_seed(parts)
    outputs = torch.randn(parts, rows, width, device="cuda").to(dtype)
    logs = torch.randn(parts, rows, device="cuda", dtype=torch.promote_types(dtype, torch.float32)) * 20
    logs[1:, 0] = -torch.inf
    outputs[1:, 0] = torch.nan
    logs[:, -1] = -torch.inf if rows > 1 else logs[:, -1]
    merge = lambda: lacis.merge_attention(list(zip(outputs, logs)))
    with poison.allocations():
        poison.shared_memory()
        merged, total = merge()
    shares = torch.softmax(logs.double(), 0).nan_to_num(0.0)[..., None]
    want = (shares * outputs.double().nan_to_num(0.0)).sum(0)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(merged.double(), want, rtol=4 * eps, atol=16 * eps)
    torch.testing.assert_close(total.double(), torch.logsumexp(logs.double(), 0), rtol=1e-6, atol=1e-5)
    assert all(map(torch.equal, (merged, total), merge()))


def test_rows_that_fill_no_tile():
    """A chain whose last tile has rows behind the end of its axis: they are neither read nor stored."""

    @lacis.kernel
    def attend(q, k, v, pattern):
        s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.125
        return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v), lacis.logsumexp(s, "j")

    torch.manual_seed(2)
    q, k, v = (torch.randn(3, n, 64, device="cuda").bfloat16() for n in (200, 320, 320))
    mask = (torch.rand(4, 5) < 0.7).repeat_interleave(64, 0).repeat_interleave(64, 1)[:200].cuda()
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(64, 64))
    assert "lacis.mma" in attend.compiled(q, k, v, pattern).asm["tiles"]
    with poison.allocations():
        poison.shared_memory()
        out, lse = attend(q, k, v, pattern)
    want, sums = dense(q[None], k[None], v[None], mask)
    assert (out.double() - want[0].nan_to_num(0.0)).norm() <= 2**-7 * out.double().norm()
    torch.testing.assert_close(lse.double(), sums[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("depth, wide", [(64, 64), (128, 128), (128, 64)])
@pytest.mark.parametrize("heads, keys", [(8, 8), (8, 2), (16, 1)])
@pytest.mark.parametrize("queries", [1, 4])
@pytest.mark.parametrize("length", [64, 4096, 64000])
def test_queries_over_a_cache(length, queries, heads, keys, depth, wide, dtype):
    torch.manual_seed(0)
    q = torch.randn(2, heads, queries, depth, device="cuda").to(dtype)
    k, v = (torch.randn(2, keys, length, size, device="cuda").to(dtype) for size in (depth, wide))
    blocks = layout(length // 64)
    attend = lambda: lacis.attention(q, k, v, blocks, return_lse=True)
    with poison.allocations():
        poison.shared_memory()
        out, lse = launched(attend)
    want, sums = dense(q, k, v, blocks.cuda().repeat_interleave(64, -1)[:, :, None])
    assert (out.double() - want).norm() <= 2**-7 * want.norm()
    torch.testing.assert_close(lse.double(), sums, rtol=1e-4, atol=1e-4)
    for _ in range(3):
        assert all(map(torch.equal, (out, lse), attend()))


def test_masks_and_padding():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, heads, n, 64, device="cuda").bfloat16() for heads, n in ((4, 2), (2, 2048), (2, 2048)))
    kept = torch.arange(2048, device="cuda") < torch.tensor([[2048], [700]], device="cuda")
    blocks = torch.ones(1, 1, 16, dtype=torch.bool)
    score = lambda s, b, h, i, j: s + (j - i) * 0.001 * (h + 1)
    out = launched(lambda: lacis.attention(q, k, v, blocks, score=score, key_padding=kept))
    i, j, h = (torch.arange(n, device="cuda") for n in (2, 2048, 4))
    far = (j - i[:, None]) * 0.001 * (h[:, None, None] + 1)
    assert (out - dense(q, k, v, kept[:, None, None], lambda s: s + far)[0]).norm() <= 2**-7 * out.norm()


@pytest.mark.parametrize("sizes", [(1, 8, 1, 2048), (2, 8, 3, 1), (2, 1, 3, 2048)])
def test_a_bias_of_heads_and_queries(sizes):
    """Heads of a group differ: their rows of the tile read rows of their own, and those behind them nothing."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, heads, n, 64, device="cuda").bfloat16() for heads, n in ((8, 3), (2, 2048), (2, 2048)))
    bias, kept = torch.randn(sizes, device="cuda"), torch.ones(1, 1, 1, 2048, dtype=torch.bool, device="cuda")
    with poison.allocations():
        out = launched(lambda: lacis.attention(q, k, v, torch.ones(1, 1, 32, dtype=torch.bool), bias=bias))
    assert (out - dense(q, k, v, kept, lambda s: s + bias)[0]).norm() <= 2**-7 * out.norm()


def test_nothing_is_kept():
    q, k = (torch.randn(1, 2, n, 64, device="cuda").bfloat16() for n in (1, 512))
    mask = lambda b, h, i, j: j < 0
    out, lse = lacis.attention(q, k, k, torch.ones(1, 1, 8, dtype=torch.bool), mask=mask, return_lse=True)
    assert not out.any() and lse.isneginf().all()


def test_gradients_take_another_way():
    q, k = (torch.randn(1, 2, n, 64, device="cuda").bfloat16().requires_grad_() for n in (1, 512))
    out = lacis.attention(q, k, k, torch.ones(1, 1, 8, dtype=torch.bool))
    wide = [x.detach().double().requires_grad_() for x in (q, k)]
    want = torch.nn.functional.scaled_dot_product_attention(wide[0], wide[1], wide[1])
    for got, exact in zip(torch.autograd.grad(out.sum(), (q, k)), torch.autograd.grad(want.sum(), wide)):
        assert (got.double() - exact).norm() <= 2**-6 * exact.norm()


def test_parts_without_keys_and_queries_of_nan():
    """Padding leaves one part some keys, in one sequence none at all; NaN stays in its row."""
    torch.manual_seed(3)
    q, k, v = (torch.randn(3, h, n, 64, device="cuda").bfloat16() for h, n in ((4, 2), (2, 8192), (2, 8192)))
    q[0, 1, 1, 5] = torch.nan
    kept = torch.arange(8192, device="cuda") < torch.tensor([[8192], [10], [0]], device="cuda")
    blocks = torch.ones(1, 1, 128, dtype=torch.bool)
    out, lse = launched(lambda: lacis.attention(q, k, v, blocks, key_padding=kept, return_lse=True))
    want, sums = dense(q, k, v, kept[:, None, None])
    assert out[0, 1, 1].isnan().all() and lse[0, 1, 1].isnan()
    assert not out[2].any() and lse[2].isneginf().all()
    there = torch.ones(3, 4, 2, dtype=torch.bool, device="cuda")
    there[0, 1, 1] = there[2] = False
    assert (out.double() - want)[there].norm() <= 2**-7 * want[there].norm()
    torch.testing.assert_close(lse.double()[there], sums[there], rtol=1e-4, atol=1e-4)


def test_sinks_are_rounded_once():
    """With a sink the merged output is float32 until the sink has taken its share."""
    torch.manual_seed(4)
    q, k, v = (torch.randn(1, h, n, 64, device="cuda").bfloat16() for h, n in ((4, 1), (2, 4096), (2, 4096)))
    sink = torch.randn(4, device="cuda") + 8
    out, lse = launched(lambda: lacis.attention(q, k, v, torch.ones(1, 1, 64).bool(), sink=sink, return_lse=True))
    want, sums = dense(q, k, v, torch.ones((), device="cuda").bool())
    total = torch.logaddexp(sums, sink.double()[:, None])
    assert (out.double() - want * (sums - total).exp()[..., None]).norm() <= 2**-7 * want.norm()
    torch.testing.assert_close(lse.double(), total, rtol=1e-4, atol=1e-4)

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


def launched(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        found = call()
    assert sum(event.count for event in seen.key_averages() if "attention" in event.key) == 1
    return found


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

# SPDX-License-Identifier: Apache-2.0
"""Heads of other widths than tiles have are padded with zeros on tensor cores: both passes, and parts of keys.

Gradients of keys and values of wide heads have a kernel each; those of more than 384 columns of both, statements make.
"""

import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)


def near(got, want):
    return (got.double() - want).norm() <= 2**-7 * want.norm()


@pytest.mark.parametrize(
    "depth, wide", [(80, 80), (40, 96), (128, 72), (192, 192), (256, 256), (192, 128), (160, 256), (192, 64)]
)
def test_other_widths(depth, wide):
    torch.manual_seed(0)
    sizes = (4, depth), (2, depth), (2, wide)
    inputs = [torch.randn(2, heads, 512, width, device="cuda").bfloat16() for heads, width in sizes]
    slope, found = torch.randn(2, 4, 512, wide, device="cuda").bfloat16(), []
    for dtype in (torch.bfloat16, torch.float64):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            out = lacis.attention(*leaves, lacis.Causal(block=64))
        found.append([out.detach(), *torch.autograd.grad(out, leaves, slope.to(dtype))])
        if dtype == torch.bfloat16:
            assert sum(event.count for event in seen.key_averages() if "attention" in event.key) == 1
    assert all(got.shape == want.shape and near(got, want) for got, want in zip(*found))


@pytest.mark.parametrize("width", [80, 192, 256])
def test_few_queries_of_other_widths(width):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, h, n, width, device="cuda").bfloat16() for h, n in ((8, 1), (2, 4096), (2, 4096)))
    kept = lacis.Pattern.from_mask(torch.ones(1, 4096, device="cuda").bool(), lacis.Bsr(1, 64))
    with torch.no_grad():
        got, want = (lacis.attention(*(x.to(t) for x in (q, k, v)), kept) for t in (torch.bfloat16, torch.float64))
    assert got.shape == (2, 8, 1, width) and near(got, want)

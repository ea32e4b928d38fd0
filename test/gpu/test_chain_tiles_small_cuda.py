# SPDX-License-Identifier: Apache-2.0
"""Attention on smaller blocks than tiles, on tensor cores: against float64, on poisoned memory, bit-equal."""

import pathlib
import sys

import poison
import pytest
import torch

import lacis

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from test_chain_tiles import check, operands  # noqa: E402
from test_chain_tiles_cuda import check_sums_too  # noqa: E402
from test_chain_tiles_small import few  # noqa: E402

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)


@pytest.mark.parametrize("sides, depth, wide", [
    ((16, 16), 64, 64), ((16, 16), 128, 128), ((32, 32), 64, 64), ((32, 32), 128, 128), ((8, 8), 64, 64),
    ((16, 64), 64, 128), ((64, 16), 32, 16), ((128, 32), 128, 64),
])  # fmt: skip
@pytest.mark.parametrize("rows, columns, share", [(256, 384, 0.2), (2048, 1024, 0.1)])
def test_attention_and_its_sums(rows, columns, share, sides, depth, wide):
    q, k, v = (x.cuda() for x in operands(rows, columns, depth, wide, heads=3))
    mask = few(rows, columns, sides, share).cuda()
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(*sides))
    check_sums_too(q, k, v, mask, pattern)


@pytest.mark.parametrize("keys", [4, 2])
@pytest.mark.parametrize("sides, depth", [
    ((16, 16), 64), ((32, 32), 64), ((16, 16), 128), ((32, 32), 128), ((8, 32), 64),
])  # fmt: skip
@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal, sides, depth, keys):
    """Heads in groups too; by columns, queries and their numbers are gathered."""
    torch.manual_seed(depth)
    leaves = [torch.randn(2, heads, 512, depth, device="cuda").bfloat16() for heads in (4, keys, keys, 4)]
    mask = few(512, 512, sides, 0.2).cuda()
    mask[:, 128:192] = False
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(*sides))
    near = (lambda b, h, i, j: j <= i) if causal else None
    found = []
    for dtype in (torch.bfloat16, torch.float64, torch.bfloat16):
        *inputs, slope = (x.to(dtype) for x in leaves)
        for x in inputs:
            x.requires_grad_()
        out = lacis.attention(*inputs, pattern, mask=near)
        found.append([out.detach(), *torch.autograd.grad(out, inputs, slope)])
        poison.flush_cache()
    for got, want, again in zip(*found):
        check(got, want, 2)
        assert torch.equal(got, again)
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        lacis.attention(*(x.detach() for x in leaves[:3]), pattern, mask=near)
    assert sum(event.count for event in seen.key_averages() if "attention" in event.key) == 1

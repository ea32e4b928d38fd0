# SPDX-License-Identifier: Apache-2.0
"""Chains whose rounds are statements on tiles, on a GPU with them: against float64, on poisoned memory, bit-equal."""

import pathlib
import sys

import poison
import pytest
import torch

import lacis

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from test_chain_results import attend_lse, lse_of  # noqa: E402
from test_chain_tiles import BLOCKS, blocks, check, cross, dense, operands  # noqa: E402

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)


def check_sums_too(q, k, v, mask, pattern):
    """The output and the log of the sums of a chain on tiles, whose first 64 rows have no entries; 20 times."""
    assert "lacis.mma" in attend_lse.compile(q, k, v, pattern).asm["tiles"]
    with poison.allocations():
        poison.shared_memory()
        out, lse = attend_lse(q, k, v, pattern)
    check(out, dense(q, k, v, mask), 2)
    torch.testing.assert_close(lse.double(), lse_of(q, k, mask), rtol=1e-5, atol=1e-5)
    assert not out[:, :64].any() and lse[:, :64].isneginf().all()
    for _ in range(20):
        poison.flush_cache()
        again = attend_lse(q, k, v, pattern)
        assert torch.equal(out, again[0]) and torch.equal(lse, again[1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("depth, wide", [(64, 64), (128, 128), (64, 128), (32, 16)])
@pytest.mark.parametrize("sides", BLOCKS)
@pytest.mark.parametrize("rows, columns", [(384, 256), (2048, 1024)])
def test_attention_and_its_sums(rows, columns, sides, depth, wide, dtype):
    q, k, v = (x.cuda() for x in operands(rows, columns, depth, wide, dtype, heads=3))
    mask = blocks(rows, columns, sides).cuda()
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[sides])
    check_sums_too(q, k, v, mask, pattern)


@pytest.mark.parametrize("keys", [4, 2])
@pytest.mark.parametrize("pattern", [lacis.Causal(block=64), lacis.BigBird(block=64)], ids=["causal", "bigbird"])
def test_attention_is_one_kernel_without_gradients(pattern, keys):
    """Heads in groups too; what asks for gradients has the same result."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, heads, 512, 64, device="cuda").bfloat16() for heads in (4, keys, keys))
    with torch.no_grad():
        out, lse = lacis.attention(q, k, v, pattern, return_lse=True)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            lacis.attention(q, k, v, pattern)
    assert sum(event.count for event in seen.key_averages() if "attention" in event.key) == 1
    wide = [x.double() for x in (q, k, v)]
    want, want_lse = lacis.attention(*wide, pattern, return_lse=True)
    check(out, want, 2)
    torch.testing.assert_close(lse.double(), want_lse, rtol=1e-4, atol=1e-4)
    check(lacis.attention(q.requires_grad_(), k, v, pattern).detach(), want, 2)


@pytest.mark.parametrize("rows", [1024, 4096])
def test_long_rows(rows):
    """Of all heads together on tiles; the statements of other types and formats share them out."""
    q, k, v = (x.cuda() for x in operands(rows, rows, 64, 64, heads=3))
    mask = cross(rows).cuda()
    square = BLOCKS[64, 64]
    for format, dtype in ((square, torch.bfloat16), (square, torch.float32), (lacis.Csr, torch.bfloat16)):
        pattern = lacis.Pattern.from_mask(mask, format)
        assert pattern.uneven[0]
        given = [x.to(dtype) for x in (q, k, v)]
        with poison.allocations():
            poison.shared_memory()
            out, lse = attend_lse(*given, pattern)
        check(out, dense(q, k, v, mask), 2)
        torch.testing.assert_close(lse.double(), lse_of(q, k, mask), rtol=1e-4, atol=1e-4)
        for _ in range(10):
            assert torch.equal(out, attend_lse(*given, pattern)[0])


@pytest.mark.parametrize("depth", [64, 128])
def test_long_rows_have_gradients(depth):
    """Of queries by rows, of keys by columns, which are as uneven."""
    torch.manual_seed(depth)
    leaves = [torch.randn(1, 3, 2048, depth, device="cuda").bfloat16() for _ in range(4)]
    found = []
    for dtype in (torch.bfloat16, torch.float64):
        *inputs, slope = (x.to(dtype) for x in leaves)
        for x in inputs:
            x.requires_grad_()
        found.append(torch.autograd.grad(lacis.attention(*inputs, lacis.BigBird(block=64)), inputs, slope))
    for got, want in zip(*found):
        check(got, want, 2)

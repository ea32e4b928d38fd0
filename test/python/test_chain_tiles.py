# SPDX-License-Identifier: Apache-2.0
"""Chains whose rounds are statements on tiles: by the steps of a GPU, in plain loops on a CPU, against float64."""

import math

import pytest
import torch
from strategies import mostly_long
from test_chain_results import attend_lse, lse_of

import lacis

TARGET = "cuda:sm_90a"
BLOCKS = {64: lacis.Bsr(64, 64), 128: lacis.Bsr(64, 128)}


@lacis.kernel
def causal(q, k, v, pattern):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.25
    s = torch.where(s.coordinate("j") <= s.coordinate("i"), s, -math.inf)
    return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v)


def operands(rows, columns, depth, wide, dtype=torch.bfloat16, heads=2):
    torch.manual_seed(rows + columns)
    return [torch.randn(heads, n, d).to(dtype) for n, d in ((rows, depth), (columns, depth), (columns, wide))]


def blocks(rows, columns, width, share=0.5):
    grid = torch.rand(rows // 64, columns // width) < share
    grid[0] = False  # a row without entries
    return grid.repeat_interleave(64, 0).repeat_interleave(width, 1)


def tiled(chain, *given):
    """The chain on a CPU, by the steps that it has on a GPU."""
    steps = chain.compile(*given, target=TARGET).steps
    kernel = chain.compile(*given, steps=steps, target="cpu")
    assert "lacis.mma" in kernel.asm["tiles"] and "lacis.roles groups 2" in kernel.asm["tiles"]
    return kernel


def check(got, want, steps=1):
    """Shares are rounded to the type of products, and the result once."""
    scale = steps * (2.0**-8 if got.dtype == torch.bfloat16 else 2.0**-11)
    assert (got.double() - want).norm() <= scale * want.norm(), (got.double() - want).norm() / want.norm()


CASES = mostly_long(
    [(width, depth, wide, dtype) for width in BLOCKS for depth, wide in ((64, 64), (128, 128), (64, 128), (32, 16))
     for dtype in (torch.bfloat16, torch.float16)],
    (64, 128, 64, torch.bfloat16), (64, 64, 128, torch.bfloat16),
)  # fmt: skip


@pytest.mark.parametrize("width, depth, wide, dtype", CASES)
def test_attention_and_its_sums(width, depth, wide, dtype):
    """An odd number of rows of blocks, which are two at once."""
    q, k, v = operands(192, 256, depth, wide, dtype)
    mask = blocks(192, 256, width)
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[width])
    out, lse = tiled(attend_lse, q, k, v, pattern)(q, k, v, pattern)
    shares = torch.einsum("hid,hjd->hij", q.double(), k.double()) * 0.25
    shares = shares.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)
    check(out, shares @ v.double(), 2)
    torch.testing.assert_close(lse.double(), lse_of(q, k, mask), rtol=1e-5, atol=1e-5)
    assert not out[:, :64].any() and lse[:, :64].isneginf().all()

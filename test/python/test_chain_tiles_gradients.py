# SPDX-License-Identifier: Apache-2.0
"""Gradients of attention as statements on tiles: by the steps of a GPU, in plain loops on a CPU, against float64."""

import functools
import math

import pytest
import torch
from strategies import mostly_long
from test_chain_tiles import BLOCKS, TARGET, blocks, check, operands, pattern_of, tiled

import lacis
from lacis.attentions.fused_kernels import Kernels
from lacis.attentions.row_products import row_products
from lacis.attentions.tiles import in_tiles
from lacis.attentions.walks import by_columns, in_squares
from lacis.emit.row_products import row_products as row_products_text
from lacis.runtime import ptxas
from lacis.runtime.chain import ChainFunction

SCALE = 0.25
BODIES = {
    "plain": ("read", 0),
    "causal": ("where", ("le", ("index", "j"), ("index", "i")), ("read", 0), ("number", -math.inf)),
}


def chains(body="plain"):
    """The gradient of q by rows, and those of k and v by columns."""
    kernels = Kernels("h", "h", SCALE, BODIES[body], ())
    names = "q", "k", "v", "lse", "arrived", "delta", "pattern"
    made = []
    for method in (kernels._rows, kernels._columns):
        function = functools.update_wrapper(functools.partial(method, (True, ())), method)
        made.append(ChainFunction(function, names, rounded=True))
    return made


def given(rows, columns, depth, wide, dtype, mask, heads=2):
    """The operands of the chains, and the gradients by float64."""
    q, k, v = operands(rows, columns, depth, wide, dtype, heads)
    arrived = torch.randn(heads, rows, wide).to(dtype)
    inputs = [x.double().requires_grad_() for x in (q, k, v)]
    scores = (torch.einsum("hid,hjd->hij", *inputs[:2]) * SCALE).masked_fill(~mask, -math.inf)
    out = scores.softmax(-1).nan_to_num(0.0) @ inputs[2]
    want = torch.autograd.grad(out, inputs, arrived.double())
    lse = scores.detach().logsumexp(-1)
    lse = torch.where(lse.isneginf(), 0, lse).float()
    delta = (out.detach() * arrived).sum(-1).float()
    return (q, k, v, lse, arrived, delta), [x.nan_to_num(0.0) for x in want]


CASES = mostly_long(
    [(depth, wide, dtype) for depth, wide in ((64, 64), (128, 128), (64, 128), (32, 16))
     for dtype in (torch.bfloat16, torch.float16)],
    (64, 128, torch.bfloat16),
)  # fmt: skip


@pytest.mark.parametrize("depth, wide, dtype", CASES)
def test_gradients(depth, wide, dtype):
    """An odd number of rows of blocks, which are two at once; a row and a column without entries."""
    mask = blocks(192, 256, 64)
    mask[:, 64:128] = False
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[64])
    operands, want = given(192, 256, depth, wide, dtype, mask)
    for chain, side, wanted in zip(chains(), (pattern, by_columns(pattern)), (want[:1], want[1:])):
        side = side.batched((2,), "h")
        got = tiled(chain, *operands, side)(*operands, side)
        for one, other in zip(got if isinstance(got, tuple) else (got,), wanted):
            assert one.dtype == dtype
            check(one, other, 2)


@pytest.mark.long
def test_masks_of_coordinates():
    mask = blocks(192, 192, 64, 1.0)
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[64])
    operands, want = given(192, 192, 64, 64, torch.bfloat16, mask & torch.ones(192, 192).tril().bool())
    for chain, side, wanted in zip(chains("causal"), (pattern, by_columns(pattern)), (want[:1], want[1:])):
        side = side.batched((2,), "h")
        got = tiled(chain, *operands, side)(*operands, side)
        for one, other in zip(got if isinstance(got, tuple) else (got,), wanted):
            check(one, other, 2)


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize("body", BODIES)
def test_code_is_assembled_without_spills(depth, body):
    mask = blocks(128, 128, 64, 1.0)
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[64])
    operands, _ = given(128, 128, depth, depth, torch.bfloat16, mask)
    for chain, side in zip(chains(body), (pattern, by_columns(pattern))):
        text = chain.compile(*operands, side.batched((2,), "h"), target=TARGET).text
        lacis._core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})


def wide_sums(q, k, v, pattern):
    """A vector that is no number of float32 is no statement."""
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) + v.at("hi")
    return lacis.einsum("hij,hje->hie", s, k)


@pytest.mark.long
def test_vectors_are_of_float32():
    q, k, _ = operands(128, 128, 64, 64)
    vector = torch.randn(2, 128).bfloat16()
    kernel = lacis.kernel(wide_sums).compile(q, k, vector, pattern_of(), target=TARGET)
    assert any("operand v is read by arithmetic" in remark for remark in kernel.remarks), kernel.remarks
    kernel = lacis.kernel(wide_sums).compile(q, k, vector.float(), pattern_of(), target=TARGET)
    assert "lacis.load_rows" in kernel.asm["tiles"]


def taken(format, depth=64, wide=64, learns=False, rows=256, full=True, kept=0.5):
    """What `lacis.attention` makes of the pattern on a GPU."""
    torch.manual_seed(0)
    grid = torch.rand(rows // format.tile[0], 768 // format.tile[1]) < kept
    mask = grid.repeat_interleave(format.tile[0], 0).repeat_interleave(format.tile[1], 1)
    mask[0, 0] = full
    pattern = lacis.Pattern.from_mask(mask, format)
    q, k, v = (torch.zeros(1, 1, 1, d, requires_grad=learns) for d in (depth, depth, wide))
    return in_tiles(pattern, q, k, v), pattern


def test_patterns_are_cut_to_tiles():
    found, pattern = taken(lacis.Bsr(128, 192))
    assert found.format.tile == (64, 64) and torch.equal(found.to_mask(), pattern.to_mask())
    assert taken(lacis.Bsr(128, 192))[0].validate() and in_squares(pattern, 64) is in_squares(pattern, 64)
    found, pattern = taken(lacis.Bsr(64, 64), learns=True)
    assert found is pattern
    found, pattern = taken(lacis.Bsr(64, 128))
    assert found is pattern
    for how in ({"learns": True}, {"depth": 128}):  # columns become rows; there is no room
        assert taken(lacis.Bsr(64, 128), **how)[0].format.tile == (64, 64)
    assert taken(lacis.Bsr(64, 64), full=False, kept=2.0)[0] is None
    assert taken(lacis.Bsr(32, 64))[0] is None and taken(lacis.Bsr(64, 96))[0] is None


@pytest.mark.long
@pytest.mark.parametrize("width", [16, 32, 64, 128])
def test_products_of_rows(width):
    """On a CPU, and the code of a GPU."""
    a, b = (torch.randn(2, 65, width).half() for _ in range(2))
    torch.testing.assert_close(row_products(a, b).double(), (a.double() * b.double()).sum(-1), rtol=1e-5, atol=1e-5)
    if ptxas.find():
        text = row_products_text("f16", width, on_gpu=True)
        lacis._core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})

# SPDX-License-Identifier: Apache-2.0
"""Gradients of attention as statements on tiles: by the steps of a GPU, in plain loops on a CPU, against float64."""

import functools
import math
import re

import pytest
import torch
from test_chain_results import attend_lse
from test_chain_tiles import BLOCKS, SQUARE, TARGET, blocks, check, operands, pattern_of, tiled

import lacis
from lacis.attentions.fused_kernels import Kernels
from lacis.attentions.row_products import row_products
from lacis.attentions.tiles import takes_gradients, takes_pattern
from lacis.attentions.walks import by_columns
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
    for method, results in ((kernels._rows, 1), (kernels._columns, 2)):
        function = functools.update_wrapper(functools.partial(method, (True, ())), method)
        made.append(ChainFunction(function, names, results))
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


def check_gradients(inputs, pattern, want, body="plain"):
    """Those of q by rows, of k and v by columns, in the type of q."""
    for chain, side, wanted in zip(chains(body), (pattern, by_columns(pattern)), (want[:1], want[1:])):
        side = side.batched((2,), "h")
        got = tiled(chain, *inputs, side)(*inputs, side)
        for one, other in zip(got if isinstance(got, tuple) else (got,), wanted):
            assert one.dtype == inputs[0].dtype
            check(one, other, 2)


SIDES = ((64, 64), (128, 128), (64, 128))


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("depth, wide", [(64, 64), (128, 128), (64, 128), (32, 16)])
@pytest.mark.parametrize("sides", SIDES)
def test_gradients(sides, depth, wide, dtype):
    """A row and a column without entries; blocks of several tiles of rows, and, by columns, of columns."""
    mask = blocks(384, 512, sides)
    mask[:, 128:256] = False
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[sides])
    operands, want = given(384, 512, depth, wide, dtype, mask)
    check_gradients(operands, pattern, want)


@pytest.mark.long
@pytest.mark.parametrize("side, depth", [(64, 64), (128, 128)])
def test_masks_of_coordinates(side, depth):
    mask = blocks(384, 384, (side, side), share=1.0)
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[side, side])
    operands, want = given(384, 384, depth, depth, torch.bfloat16, mask & torch.ones(384, 384).tril().bool())
    check_gradients(operands, pattern, want, "causal")


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize("body", BODIES)
def test_code_is_assembled_without_spills(depth, body):
    mask = blocks(128, 128, share=1.0)
    pattern = lacis.Pattern.from_mask(mask, SQUARE)
    operands, _ = given(128, 128, depth, depth, torch.bfloat16, mask)
    for chain, side in zip(chains(body), (pattern, by_columns(pattern))):
        text = chain.compile(*operands, side.batched((2,), "h"), target=TARGET).text
        lacis._core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("depth, wide", [(192, 192), (256, 256), (192, 128)])
def test_wide_heads_are_assembled_without_spills(depth, wide):
    """And say why the gradients of keys and values are not."""
    inputs, _ = given(128, 128, depth, wide, torch.bfloat16, torch.ones(128, 128).bool())
    pattern = lacis.Pattern.from_mask(torch.ones(128, 128).bool(), SQUARE)
    text = attend_lse.compile(*inputs[:3], pattern, target=TARGET).text
    lacis._core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})
    columns = chains()[1].compile(*inputs, pattern.batched((2,), "h"), target=TARGET)
    words = f"sums of {depth + wide} columns have no place in registers; 256 have"
    words = words if depth < 256 else "the tiles of a round do not fit twice into shared memory"
    assert any(words in remark for remark in columns.remarks), columns.remarks


@pytest.mark.long
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("depth, wide", [(192, 192), (192, 128), (256, 128)])
def test_keys_and_values_of_wide_heads_are_apart(depth, wide, body):
    mask = blocks(192, 256)
    pattern = lacis.Pattern.from_mask(mask, SQUARE)
    kept = mask & torch.ones(192, 256).tril().bool() if body == "causal" else mask
    inputs, want = given(192, 256, depth, wide, torch.bfloat16, kept)
    kernels = Kernels("h", "h", SCALE, BODIES[body], (), turns=False)
    assert kernels.sums_apart(inputs[0], inputs[2]) and takes_gradients(inputs[0], inputs[2])
    for what, side, wanted in zip(("rows", "keys", "values"), (pattern, *[by_columns(pattern)] * 2), want):
        own = kernels.given(what, (*inputs, side.batched((2,), "h")))
        check(tiled(kernels.gradient(what, (True, ())), *own)(*own), wanted, 2)


@pytest.mark.long
@pytest.mark.parametrize("wide, ahead", [(64, 0), (128, 1)])
def test_stores_of_other_widths_wait_for_their_buffer(wide, ahead):
    """Of two buffers in turn one may still be read, unless a store has left one out."""
    mask = blocks(128, 128, share=1.0)
    operands, _ = given(128, 128, wide, 128, torch.bfloat16, mask)
    side = by_columns(lacis.Pattern.from_mask(mask, SQUARE)).batched((2,), "h")
    ptx = chains()[1].compile(*operands, side, target=TARGET).asm["ptx"]
    assert set(re.findall(r"cp\.async\.bulk\.wait_group\.read\s+(\d)", ptx)) == {str(ahead)}


@pytest.mark.long
@pytest.mark.parametrize(
    "target, products", [("cuda:sm_86", "mma.sync"), (TARGET, "wgmma.mma_async"), ("cuda:sm_75", "")]
)
def test_gpus_from_sm_80_on_have_tiles(target, products):
    """Two blocks of warps share a processor; older GPUs have the statements."""
    mask = blocks(128, 128)
    pattern = lacis.Pattern.from_mask(mask, SQUARE)
    inputs, _ = given(128, 128, 64, 64, torch.bfloat16, mask)
    forward = attend_lse.compile(*inputs[:3], pattern, target=target)
    backward = chains()[0].compile(*inputs, pattern.batched((2,), "h"), target=target)
    for kernel in (forward, backward):
        assert ("lacis.mma" in kernel.asm["tiles"]) == bool(products) and products in kernel.asm["ptx"]
        assert products != "mma.sync" or ".minnctapersm 2" in kernel.asm["ptx"]


@pytest.mark.long
@pytest.mark.parametrize("target, threads", [("cuda:sm_80", 160), ("cuda:sm_90", 128)])
def test_consumers_copy_where_a_warp_would_keep_a_second_block_off(target, threads):
    """Two blocks of heads of 128 fit into 227 KB, not into 163."""
    mask = blocks(128, 128)
    inputs, _ = given(128, 128, 128, 128, torch.bfloat16, mask)
    side = by_columns(lacis.Pattern.from_mask(mask, SQUARE)).batched((2,), "h")
    chain = Kernels("h", "h", SCALE, ("read", 0), ()).gradient("columns", (True, ()))
    assert f".maxntid {threads}," in chain.compile(*inputs, side, target=target).asm["ptx"]


@pytest.mark.long
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_86", TARGET])
def test_vectors_have_room_beside_the_boxes(target):
    """With a number for each query and one for each key the rings of heads of 128 filled all that sm_80 has."""
    mask = blocks(128, 128)
    inputs, _ = given(128, 128, 128, 128, torch.bfloat16, mask)
    kernels = Kernels(
        "h", "h", SCALE, ("add", ("add", ("read", 0), ("read", 1)), ("read", 2)), (("h", "i"), ("h", "j"))
    )
    side = by_columns(lacis.Pattern.from_mask(mask, SQUARE)).batched((2,), "h")
    chain = kernels.gradient("columns", (True, ()))
    kernel = chain.compile(*inputs, side, torch.zeros(2, 128), torch.zeros(2, 128), target=target)
    assert "lacis.mma" in kernel.asm["tiles"]


def wide_sums(q, k, v, pattern):
    """A vector of a half type is read element by element."""
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) + v.at("hi")
    return lacis.einsum("hij,hje->hie", s, k)


@pytest.mark.long
def test_vectors_are_of_float32():
    q, k, _ = operands(128, 128, 64, 64)
    vector, pattern = torch.randn(2, 128).bfloat16(), pattern_of()
    scores = q.double() @ k.double().mT + vector.double()[..., None]
    for own, is_loaded in ((vector, False), (vector.float(), True)):
        kernel = tiled(lacis.kernel(wide_sums), q, k, own, pattern)
        assert ("lacis.load_rows" in kernel.asm["tiles"]) == is_loaded
        check(kernel(q, k, own, pattern), scores @ k.double(), 2)


def pattern_in(format, full=True):
    mask = torch.ones(2 * format.tile[0], 2 * format.tile[1], dtype=torch.bool)
    mask[0, 0] = full
    return lacis.Pattern.from_mask(mask, format)


def test_which_patterns_tiles_take():
    """Whole blocks of multiples of 64 rows and columns, or of parts of 64."""
    assert all(takes_pattern(pattern_in(lacis.Bsr(*sides))) for sides in ((64, 64), (64, 128), (192, 256)))
    assert not any(takes_pattern(pattern_in(lacis.Bsr(*sides))) for sides in ((4, 64), (64, 96)))
    assert not takes_pattern(pattern_in(lacis.Bsr(64, 64), full=False))
    assert not takes_pattern(lacis.Pattern.from_mask(torch.ones(64, 64, dtype=torch.bool), lacis.Csr))


@pytest.mark.long
@pytest.mark.parametrize("width", [16, 32, 64, 128, 192, 256])
def test_products_of_rows(width):
    """On a CPU, and the code of a GPU."""
    a, b = (torch.randn(2, 65, width).half() for _ in range(2))
    torch.testing.assert_close(row_products(a, b).double(), (a.double() * b.double()).sum(-1), rtol=1e-5, atol=1e-5)
    if ptxas.find():
        text = row_products_text("f16", width & -width, on_gpu=True)
        lacis._core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})

# SPDX-License-Identifier: Apache-2.0
"""Chains whose rounds are statements on tiles: by the steps of a GPU, in plain loops on a CPU, against float64."""

import math

import pytest
import torch
from strategies import mostly_long
from test_chain_results import attend_lse, lse_of

import lacis
from lacis.capture.traced import Traced, combine

TARGET = "cuda:sm_90a"
BLOCKS = {64: lacis.Bsr(64, 64), 128: lacis.Bsr(64, 128)}


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


def dense(q, k, v, mask):
    shares = torch.einsum("hid,hjd->hij", q.double(), k.double()) * 0.25
    return shares.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0) @ v.double()


CASES = mostly_long(
    [(width, depth, wide, dtype) for width in BLOCKS for depth, wide in ((64, 64), (128, 128), (64, 128), (32, 16))
     for dtype in (torch.bfloat16, torch.float16) if (width, depth) != (128, 128)],
    (64, 64, 128, torch.bfloat16),
)  # fmt: skip


@pytest.mark.parametrize("width, depth, wide, dtype", CASES)
def test_attention_and_its_sums(width, depth, wide, dtype):
    """An odd number of rows of blocks, which are two at once."""
    q, k, v = operands(192, 256, depth, wide, dtype)
    mask = blocks(192, 256, width)
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[width])
    out, lse = tiled(attend_lse, q, k, v, pattern)(q, k, v, pattern)
    check(out, dense(q, k, v, mask), 2)
    torch.testing.assert_close(lse.double(), lse_of(q, k, mask), rtol=1e-5, atol=1e-5)
    assert not out[:, :64].any() and lse[:, :64].isneginf().all()


def masked(q, k, v, pattern):
    """Entries behind the diagonal are no entries: a comparison of coordinates."""
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.25
    kept = ("le", ("index", "j"), ("index", "i"))
    s = combine("where", Traced(s.trace, (), kept, s.letters, True), s, -math.inf)
    return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v)


@pytest.mark.long
def test_masks_of_coordinates():
    q, k, v = operands(192, 192, 64, 64)
    pattern = lacis.Pattern.from_mask(blocks(192, 192, 64, 1.0), BLOCKS[64])
    out = tiled(lacis.kernel(masked), q, k, v, pattern)(q, k, v, pattern)
    mask = blocks(192, 192, 64, 1.0) & torch.ones(192, 192).tril().bool()
    check(out, dense(q, k, v, mask), 2)


def pattern_of(share=1.0, format=BLOCKS[64], rows=128):
    mask = torch.ones(rows, 128).bool()
    mask[::3, ::5] = share == 1.0
    return lacis.Pattern.from_mask(mask, format)


OBJECTIONS = {
    "stored blocks of the pattern may have places without an entry": {"pattern": pattern_of(0.5)},
    "stored blocks have no 64 rows, or no 64 or 128 columns": {"pattern": pattern_of(format=lacis.Bsr(32, 32))},
    "entries of the pattern are not stored in blocks": {"pattern": pattern_of(format=lacis.Csr)},
    "no positions of one row": {"pattern": pattern_of(format=lacis.Coo)},
    "the length of an axis is no multiple of the blocks": {"pattern": pattern_of(rows=96), "rows": 96},
    "is not of a half type": {"dtype": torch.float32},
    "operand q is no 16, 32, 64 or 128 elements wide": {"depth": 24},
    "the tiles of two rounds do not fit twice into shared memory": {
        "pattern": pattern_of(format=BLOCKS[128]),
        "depth": 128,
        "wide": 128,
    },
}


@pytest.mark.long
@pytest.mark.parametrize("why", OBJECTIONS)
def test_what_is_no_statement_on_tiles_says_why(why):
    """Such a chain has a nest for each statement; a step that asks for the loop is refused with the reason."""
    given = {"pattern": pattern_of(), "rows": 128, "depth": 64, "wide": 64, "dtype": torch.bfloat16} | OBJECTIONS[why]
    pattern = given.pop("pattern")
    q, k, v = operands(given["rows"], 128, given["depth"], given["wide"], given["dtype"])
    kernel = attend_lse.compile(q, k, v, pattern, target=TARGET)
    assert "lacis.mma" not in kernel.asm["tiles"]
    assert any(why in remark for remark in kernel.remarks), kernel.remarks
    with pytest.raises(lacis.CompileError, match=why):
        attend_lse.compile(q, k, v, pattern, steps=[lacis.steps.Roll("j0")], target=TARGET)


def unbounded(q, k, v, pattern):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k)
    return lacis.einsum("hij,hje->hie", s, v)


def biased(q, k, v, pattern):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) + v.at("hij")
    return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), k)


@pytest.mark.long
def test_other_chains_say_why():
    q, k, v = operands(128, 128, 64, 128)
    kernel = lacis.kernel(biased).compile(q, k, v, pattern_of(), target=TARGET)
    why = "is read by arithmetic; tiles of operands are multiplied"
    assert "lacis.mma" not in kernel.asm["tiles"] and any(why in remark for remark in kernel.remarks), kernel.remarks


@pytest.mark.long
def test_sums_without_a_maximum():
    q, k, v = operands(192, 256, 64, 64)
    mask = blocks(192, 256, 64)
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[64])
    out = tiled(lacis.kernel(unbounded), q, k, v, pattern)(q, k, v, pattern)
    check(out, (q.double() @ k.double().mT * mask) @ v.double(), 2)


MISSING = {"bind": "is bound to 'warpgroup'", "stage": "is not staged in 'shared'"}


@pytest.mark.parametrize("verb", MISSING)
def test_a_step_that_is_missing_is_named(verb):
    q, k, v = operands(128, 128, 64, 64)
    pattern = pattern_of()
    chain = lacis.kernel(masked)
    steps = [step for step in chain.compile(q, k, v, pattern, target=TARGET).steps if step.mnemonic != verb]
    with pytest.raises(lacis.CompileError, match=MISSING[verb]):
        chain.compile(q, k, v, pattern, steps=steps, target="cpu")

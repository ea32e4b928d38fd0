# SPDX-License-Identifier: Apache-2.0
"""Statements on tiles of patterns with smaller blocks: 64 rows walk the union of their blocks, gathered by columns."""

import pytest
import torch
from test_chain_results import attend_lse, lse_of
from test_chain_tiles import TARGET, blocks, check, dense, masked, operands, tiled
from test_chain_tiles_gradients import BODIES, SCALE, chains, check_gradients, given
from test_chain_tiles_tails import cut

import lacis
from lacis.attentions.fused_kernels import Kernels
from lacis.attentions.tiles import takes_pattern
from lacis.attentions.walks import by_columns
from lacis.runtime import ptxas

CASES = [
    ((16, 16), 64, 64, torch.bfloat16), ((32, 32), 128, 128, torch.float16), ((8, 8), 32, 16, torch.bfloat16),
    ((16, 64), 64, 128, torch.bfloat16), ((64, 16), 64, 64, torch.float16), ((128, 32), 64, 64, torch.bfloat16),
    ((8, 128), 64, 64, torch.bfloat16),
]  # fmt: skip


def few(rows, columns, sides, share=0.2):
    """Blocks, of which no panel of 64 rows has the first columns; the first panel has none."""
    mask = blocks(rows, columns, sides, share)
    mask[: max(64, sides[0])] = False
    return mask


@pytest.mark.long
@pytest.mark.parametrize("sides, depth, wide, dtype", CASES)
def test_attention_and_its_sums(sides, depth, wide, dtype):
    """Rows of a panel have blocks of their own, and the last round of a panel fewer than it has room for."""
    q, k, v = operands(256, 384, depth, wide, dtype)
    mask = few(256, 384, sides)
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(*sides))
    kernel = tiled(attend_lse, q, k, v, pattern)
    out, lse = kernel(q, k, v, pattern)
    assert ("part = array" in kernel.asm["tiles"]) == (sides[1] < 64)
    check(out, dense(q, k, v, mask), 2)
    torch.testing.assert_close(lse.double(), lse_of(q, k, mask), rtol=1e-5, atol=1e-5)
    assert not out[:, :64].any() and lse[:, :64].isneginf().all()


@pytest.mark.long
@pytest.mark.parametrize("sides", [(16, 16), (32, 32), (8, 16), (32, 64)])
def test_masks_of_coordinates(sides):
    """The columns of a round have coordinates of their own."""
    q, k, v = operands(192, 192, 64, 64)
    mask = blocks(192, 192, sides, share=0.7)
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(*sides))
    out = tiled(lacis.kernel(masked), q, k, v, pattern)(q, k, v, pattern)
    check(out, dense(q, k, v, mask & torch.ones(192, 192).tril().bool()), 2)


def grouped(q, k, v, pattern):
    """Two heads of a group share keys."""
    s = lacis.einsum("ij,grid,gjd->grij", pattern, q, k) * 0.25
    return lacis.einsum("grij,gje->grie", lacis.softmax(s, "j"), v)


@pytest.mark.long
def test_groups_share_keys():
    q, k, v = operands(128, 192, 64, 64, heads=4)
    mask = few(128, 192, (16, 16))
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(16, 16))
    given = q.reshape(2, 2, 128, 64), k[:2], v[:2]
    out = tiled(lacis.kernel(grouped), *given, pattern)(*given, pattern)
    keys, values = (x[:2].repeat_interleave(2, 0) for x in (k, v))
    check(out.reshape(4, 128, 64), dense(q, keys, values, mask), 2)


@pytest.mark.long
@pytest.mark.parametrize("body", ["plain", "causal"])
@pytest.mark.parametrize("sides, depth, wide", [
    ((16, 16), 64, 64), ((32, 32), 128, 128), ((8, 64), 64, 128), ((64, 32), 32, 16),
])  # fmt: skip
def test_gradients(sides, depth, wide, body):
    """By columns, queries and the numbers of each are gathered."""
    mask = few(256, 256, sides, share=0.3)
    mask[:, 128:192] = False
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(*sides))
    kept = mask & torch.ones(256, 256).tril().bool() if body == "causal" else mask
    inputs, want = given(256, 256, depth, wide, torch.bfloat16, kept)
    check_gradients(inputs, pattern, want, body)


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize("side", [16, 32])
def test_code_is_assembled_without_spills(side, depth):
    """But for the gradients of keys and values with heads of 128, whose sums leave no register for bits."""
    mask = blocks(128, 128, (side, side))
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(side, side))
    inputs, _ = given(128, 128, depth, depth, torch.bfloat16, mask)
    q, k, v = inputs[:3]
    texts = [attend_lse.compile(q, k, v, pattern, target=TARGET).text]
    sides = [pattern, by_columns(pattern)] if depth == 64 else [pattern]
    for chain, own in zip(chains("causal"), sides):
        texts.append(chain.compile(*inputs, own.batched((2,), "h"), target=TARGET).text)
    for text in texts:
        lacis._core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})


def heads(height, width, order="h, i, j", above="h : dense, i floordiv R : dense"):
    """The text of a format of stored blocks, below levels of their own for heads."""
    below = "j floordiv C : compressed, i mod R : dense, j mod C : dense"
    return f"({order}) -> ({above}, {below})".replace("R", str(height)).replace("C", str(width))


def of_heads(rows, columns, sides, share=0.4):
    """Blocks of two heads: the first one lacks rows of blocks, the second columns, which the other has."""
    mask = torch.stack([cut(rows, columns, sides, share) for _ in range(2)])
    mask[1, : sides[0]] = True
    mask[1, :, : sides[1]] = False
    return mask


APART = [
    ((16, 16), 192, 128, "plain"), ((32, 32), 200, 132, "causal"), ((8, 16), 100, 100, "plain"),
    ((128, 16), 200, 128, "causal"), ((16, 64), 132, 300, "plain"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("batch", [(), (2,)], ids=["alone", "in a batch"])
@pytest.mark.parametrize("sides, rows, columns, body", APART)
def test_heads_with_patterns_of_their_own(sides, rows, columns, body, batch):
    """Forward and gradients; each head begins with a panel, wherever the rows of the one before it end."""
    mask = of_heads(rows, columns, sides)
    pattern = lacis.Pattern.from_mask(mask, heads(*sides))
    mask = mask.repeat(*batch, 1, 1) if batch else mask
    kept = mask & torch.ones(rows, columns).tril().bool() if body == "causal" else mask
    inputs, want = given(rows, columns, 64, 64, torch.bfloat16, kept, heads=len(mask))
    inputs, want = ([x.unflatten(0, (*batch, 2)) for x in each] for each in (inputs, want))
    letters = "bh" if batch else "h"
    kernels = Kernels(letters, letters, SCALE, BODIES[body], ())

    def found(chain, inputs, pattern):
        pattern = pattern.batched(batch, "b") if batch else pattern
        got = tiled(chain, *inputs, pattern)(*inputs, pattern)
        return got if isinstance(got, tuple) else (got,)

    out, lse = (x.flatten(0, len(batch)) for x in found(kernels.attention, inputs[:3], pattern))
    q, k, v = (x.flatten(0, len(batch)) for x in inputs[:3])
    check(out, dense(q, k, v, kept), 2)
    torch.testing.assert_close(lse.double(), lse_of(q, k, kept), rtol=1e-5, atol=1e-5)
    for what, side, wanted in (("rows", pattern, want[:1]), ("columns", by_columns(pattern), want[1:])):
        for one, other in zip(found(kernels.gradient(what, (True, ())), inputs, side), wanted):
            check(one, other, 2)


def test_heads_below_a_batch():
    """Positions of a head begin behind the panels of those before it: as many as rows of the pattern say."""
    q, k, v = (x.unflatten(0, (2, 2)) for x in operands(192, 64, 64, 64, heads=4))
    mask = of_heads(192, 64, (16, 16))
    pattern = lacis.Pattern.from_mask(mask, heads(16, 16)).batched((2,), "b")
    attention = Kernels("bh", "bh", SCALE, BODIES["plain"], ()).attention
    out, _ = tiled(attention, q, k, v, pattern)(q, k, v, pattern)
    check(out.flatten(0, 1), dense(*(x.flatten(0, 1) for x in (q, k, v)), mask.repeat(2, 1, 1)), 2)


@pytest.mark.long
@pytest.mark.parametrize("columns_first", [False, True])
def test_blocks_whose_columns_come_first(columns_first):
    """The levels of a stored block may have either order."""
    format = "(i, j) -> (i floordiv 32 : dense, j floordiv 16 : compressed, {})"
    inner = ["i mod 32 : dense", "j mod 16 : dense"]
    q, k, v = operands(128, 192, 64, 64)
    mask = few(128, 192, (32, 16), 0.4)
    pattern = lacis.Pattern.from_mask(mask, format.format(", ".join(reversed(inner) if columns_first else inner)))
    check(tiled(attend_lse, q, k, v, pattern)(q, k, v, pattern)[0], dense(q, k, v, mask), 2)


def apart(q, k, v, pattern):
    """Heads have patterns of their own, whose axis comes behind that of rows."""
    s = lacis.einsum("ihj,hid,hjd->ihj", pattern, q, k) * 0.25
    return lacis.einsum("ihj,hje->ihe", lacis.softmax(s, "j"), v)


@pytest.mark.long
def test_what_is_not_gathered_says_why():
    q, k, v = operands(128, 128, 64, 64)
    behind = heads(16, 16, "i, h, j", "i floordiv R : dense, h : dense")
    behind = lacis.Pattern.from_mask(torch.ones(128, 2, 128).bool(), behind)
    remarks = lacis.kernel(apart).compile(q, k, v, behind, target=TARGET).remarks
    said = "stored blocks of less than 64 rows or columns are below heads whose axes and levels are not the first"
    assert any(said in remark for remark in remarks), remarks
    odd = lacis.Pattern.from_mask(torch.ones(128, 131).bool(), lacis.Bsr(16, 16))
    remarks = attend_lse.compile(q, *operands(128, 131, 64, 64)[1:], odd, target=TARGET).remarks
    said = "stored blocks of less than 64 columns are of an axis whose length is no multiple of 4"
    assert any(said in remark for remark in remarks), remarks
    odd = lacis.Pattern.from_mask(torch.ones(96, 192).bool(), lacis.Bsr(24, 24))
    remarks = attend_lse.compile(q[:, :96], *operands(96, 192, 64, 64)[1:], odd, target=TARGET).remarks
    said = "stored blocks have sides that are no multiple of 64, and none of 8, 16 and 32"
    assert any(said in remark for remark in remarks), remarks


def test_which_patterns_tiles_take():
    """Of lengths that are multiples of 4, or any where sides are of 64, and of heads of their own."""

    def pattern(sides, rows=128, columns=128):
        return lacis.Pattern.from_mask(torch.ones(rows, columns, dtype=torch.bool), lacis.Bsr(*sides))

    assert all(takes_pattern(pattern(sides)) for sides in ((16, 16), (32, 8), (64, 16), (16, 128)))
    assert not any(takes_pattern(pattern(sides)) for sides in ((4, 16), (16, 4)))
    assert takes_pattern(pattern((16, 16), rows=96)) and takes_pattern(pattern((16, 16), columns=92))
    assert takes_pattern(pattern((64, 64), columns=91)) and not takes_pattern(pattern((16, 16), columns=91))
    assert takes_pattern(lacis.Pattern.from_mask(torch.ones(2, 128, 128).bool(), heads(16, 16)))
    assert not takes_pattern(lacis.Pattern.from_mask(torch.eye(128).bool(), lacis.Bsr(16, 16)))

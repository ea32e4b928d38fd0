# SPDX-License-Identifier: Apache-2.0
"""Statements on tiles where rows or columns end inside of a block: by the steps of a GPU, on a CPU, against float64."""

import pytest
import test_chain_tiles_captures as captures
import torch
from strategies import mostly_long
from test_chain_results import attend_lse, lse_of
from test_chain_tiles import TARGET, check, dense, operands, tiled
from test_chain_tiles_gradients import chains, check_gradients, given

import lacis
from lacis.attentions.parts import in_parts
from lacis.attentions.tiles import room_behind
from lacis.attentions.traced_scores import TracedScores, with_rooms
from lacis.attentions.walks import by_columns
from lacis.runtime import ptxas


def cut(rows, columns, sides, share=0.5):
    """Whole blocks, of which the last ones end behind the axes; the first row of blocks has none."""
    grid = torch.rand(-(-rows // sides[0]), -(-columns // sides[1])) < share
    grid[0], grid[1:, -1] = False, True
    return grid.repeat_interleave(sides[0], 0).repeat_interleave(sides[1], 1)[:rows, :columns]


SIZES = [
    ((64, 64), 200, 131), ((128, 128), 333, 65), ((64, 192), 128, 448), ((64, 256), 130, 321), ((128, 64), 260, 190),
    ((64, 16), 100, 128), ((32, 64), 128, 100), ((16, 128), 128, 192), ((16, 16), 200, 132), ((8, 32), 100, 100),
]  # fmt: skip
CASES = mostly_long(SIZES, ((64, 64), 200, 131))


@pytest.mark.parametrize("sides, rows, columns", CASES)
def test_attention_and_its_sums(sides, rows, columns):
    """Keys behind the last one take no part, whatever the scores of the others are."""
    q, k, v = operands(rows, columns, 64, 64)
    q[..., 0], k[..., 0] = 30, -30  # scores of all keys are far below 0
    mask = cut(rows, columns, sides)
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(*sides))
    out, lse = tiled(attend_lse, q, k, v, pattern)(q, k, v, pattern)
    check(out, dense(q, k, v, mask), 2)
    torch.testing.assert_close(lse.double(), lse_of(q, k, mask), rtol=1e-5, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("sides, rows, columns", SIZES)
@pytest.mark.parametrize("body", ["plain", "causal"])
def test_gradients(sides, rows, columns, body):
    mask = cut(rows, columns, sides)
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(*sides))
    kept = mask & torch.ones(rows, columns).tril().bool() if body == "causal" else mask
    inputs, want = given(rows, columns, 64, 64, torch.bfloat16, kept)
    check_gradients(inputs, pattern, want, body)


@pytest.mark.parametrize("columns_first", [False, True])
def test_sides_are_found_by_axis(columns_first):
    """The room that tiles read behind a tensor, and what parts of keys are cut from: blocks of 192 rows, 64 columns."""
    inner = ["i mod 192 : dense", "j mod 64 : dense"]
    inner = ", ".join(reversed(inner) if columns_first else inner)
    format = f"(i, j) -> (i floordiv 192 : dense, j floordiv 64 : compressed, {inner})"
    pattern = lacis.Pattern.from_mask(torch.ones(200, 131).bool(), format)
    assert room_behind(pattern) == (384 - 200) * 131 + (192 - 131)
    keys = in_parts(lacis.Pattern.from_mask(torch.ones(4, 256).bool(), format), 2, 4)
    assert keys.format.tile[-1] == 64 and keys.part().buffers["pos2"].tolist() == [0, 2, 4]


@pytest.mark.long
@pytest.mark.parametrize("side", [64, 128, 16])
@pytest.mark.parametrize("case", ["padding", "of all heads", "scale of queries", "documents", "bias", "half bias"])
def test_scores_that_read_tensors(case, side, monkeypatch):
    """Rows of vectors that begin inside of a chunk; elements behind the last key, where memory has room."""
    monkeypatch.setattr(captures, "ROWS", 200)
    monkeypatch.setattr(captures, "COLUMNS", 132 if side == 16 else 131)
    monkeypatch.setattr(captures, "blocks", lambda rows, columns, sides: cut(rows, columns, sides))
    kernels, inputs, pattern, tensors, want, wanted = captures.made(case, side)
    tensors = with_rooms(TracedScores(kernels.body, tensors, kernels.letters), room_behind(pattern))
    rows = pattern.batched((captures.HEADS,), "h")
    out, _ = tiled(kernels.attention, *inputs[:3], rows, *tensors)(*inputs[:3], rows, *tensors)
    check(out, want, 2)
    for chain, across, (first, *_) in captures.gradients(kernels, case, wanted):
        own = by_columns(pattern).batched((captures.HEADS,), "h") if across else rows
        got = tiled(chain, *inputs, own, *tensors)(*inputs, own, *tensors)
        check(got[0] if isinstance(got, tuple) else got, first.nan_to_num(0.0), 2)


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("depth", [64, 128])
def test_code_is_assembled_without_spills(depth):
    mask = torch.ones(100, 99).bool()
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(64, 64))
    inputs, _ = given(100, 99, depth, depth, torch.bfloat16, mask)
    texts = [attend_lse.compile(*inputs[:3], pattern, target=TARGET).text]
    for chain, side in zip(chains("causal"), (pattern, by_columns(pattern))):
        texts.append(chain.compile(*inputs, side.batched((2,), "h"), target=TARGET).text)
    for text in texts:
        lacis._core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})

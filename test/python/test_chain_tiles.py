# SPDX-License-Identifier: Apache-2.0
"""Chains whose rounds are statements on tiles: by the steps of a GPU, in plain loops on a CPU, against float64."""

import math

import pytest
import torch
from strategies import mostly_long
from test_chain_results import attend_lse, lse_of

import lacis
from lacis.attentions.fused_kernels import Kernels
from lacis.attentions.layouts import Layout
from lacis.attentions.parts import Parts
from lacis.attentions.patterns import choose
from lacis.attentions.scores import Scores
from lacis.attentions.traced_scores import trace_scores
from lacis.capture.traced import Traced, combine

TARGET = "cuda:sm_90a"
BLOCKS = {sides: lacis.Bsr(*sides) for sides in ((64, 64), (64, 128), (128, 128), (128, 64))}
SQUARE = BLOCKS[64, 64]


def operands(rows, columns, depth, wide, dtype=torch.bfloat16, heads=2):
    torch.manual_seed(rows + columns)
    return [torch.randn(heads, n, d).to(dtype) for n, d in ((rows, depth), (columns, depth), (columns, wide))]


def blocks(rows, columns, sides=(64, 64), share=0.5):
    grid = torch.rand(rows // sides[0], columns // sides[1]) < share
    grid[0] = False  # a row without entries
    return grid.repeat_interleave(sides[0], 0).repeat_interleave(sides[1], 1)


def tiled(chain, *given):
    """The chain on a CPU, by the steps that it has on a GPU."""
    steps = chain.compile(*given, target=TARGET).steps
    kernel = chain.compile(*given, steps=steps, target="cpu")
    assert "lacis.mma" in kernel.asm["tiles"] and "lacis.roles" in kernel.asm["tiles"]
    return kernel


def check(got, want, steps=1):
    """Shares are rounded to the type of products, and the result once."""
    scale = steps * (2.0**-8 if got.dtype == torch.bfloat16 else 2.0**-11)
    assert (got.double() - want).norm() <= scale * want.norm(), (got.double() - want).norm() / want.norm()


def dense(q, k, v, mask):
    shares = torch.einsum("hid,hjd->hij", q.double(), k.double()) * 0.25
    return shares.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0) @ v.double()


WIDTHS = (64, 64), (128, 128), (64, 128), (32, 16), (192, 192), (256, 256), (192, 128)
CASES = mostly_long(
    [(sides, *sizes, dtype) for sides in BLOCKS for sizes in WIDTHS
     for dtype in (torch.bfloat16, torch.float16)],
    ((128, 128), 64, 128, torch.bfloat16),
)  # fmt: skip


@pytest.mark.parametrize("sides, depth, wide, dtype", CASES)
def test_attention_and_its_sums(sides, depth, wide, dtype):
    """Rows of 128 are two tiles of the same positions; products of a round wait for the next."""
    q, k, v = operands(384, 256, depth, wide, dtype)
    mask = blocks(384, 256, sides)
    pattern = lacis.Pattern.from_mask(mask, BLOCKS[sides])
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


def cross(rows):
    """Blocks of the diagonal, of the last row and of the first column."""
    grid = torch.eye(rows // 64).bool()
    grid[-1] = grid[:, 0] = True
    return grid.repeat_interleave(64, 0).repeat_interleave(64, 1)


@pytest.mark.long
def test_long_rows_of_all_heads_begin_together():
    """Rows of about one length have block.x; where few are much longer, the batch has it."""
    q, k, v = operands(1024, 1024, 64, 64)
    lower = torch.ones(16, 16).tril().bool().repeat_interleave(64, 0).repeat_interleave(64, 1)
    for mask, unit in ((cross(1024), "block.y"), (lower, "block.x")):
        pattern = lacis.Pattern.from_mask(mask, SQUARE)
        assert lacis.steps.Bind("i0", unit) in attend_lse.compile(q, k, v, pattern, target=TARGET).steps
        check(tiled(attend_lse, q, k, v, pattern)(q, k, v, pattern)[0], dense(q, k, v, mask), 2)


@pytest.mark.long
@pytest.mark.parametrize("heads, queries", [(2, 3), (8, 1)])
def test_few_queries_over_parts_of_keys(heads, queries):
    """The heads of a group are rows of a tile; parts of its keys are summed up in float32 and merged."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, h, n, 64).bfloat16() for h, n in ((heads, queries), (2, 1024), (2, 1024)))
    mask = (torch.rand(16) < 0.6).repeat_interleave(64).expand(64, -1)
    parts = Parts(Layout(choose(lacis.Pattern.from_mask(mask[:queries], lacis.Bsr(queries, 64)), q, k), q, k), 3)
    given = parts.query(q), k, v, parts.pattern()
    out, lse = tiled(Kernels("bgp", "bg", 0.25, ("read", 0), (), "bg").attention, *given)(*given)
    assert out.dtype == torch.float32
    k, v = (x.repeat_interleave(heads // 2, 1).flatten(0, 1) for x in (k, v))
    out, lse = parts.merged_parts(out, lse, torch.bfloat16)
    check(out.flatten(0, 1), dense(q.flatten(0, 1), k, v, mask[:queries]), 2)
    torch.testing.assert_close(lse.flatten(0, 1).double(), lse_of(q.flatten(0, 1), k, mask[:queries]))


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(1, 8, 1, 1024), (2, 8, 3, 1), (1, 1, 3, 1024), (2, 1, 1, 1024)])
def test_a_bias_of_few_queries(sizes):
    """What differs by heads of a group is one of rows; the tile has rows behind those."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, h, n, 64).bfloat16() for h, n in ((8, 3), (2, 1024), (2, 1024)))
    parts = Parts(Layout(choose(lacis.Pattern.from_mask(torch.ones(3, 1024).bool(), lacis.Bsr(3, 64)), q, k), q, k), 3)
    bias = torch.randn(sizes)
    traced = trace_scores(Scores((2, 8, 3, 1024), None, (), bias, None), parts, torch.float32)
    kernels = Kernels("bgp", "bg", 0.25, traced.body, traced.letters, "bg", turns=False)
    given = parts.query(q), k, v, parts.pattern(), *traced.operands
    out, _ = parts.merged_parts(*tiled(kernels.attention, *given)(*given), torch.bfloat16)
    k, v = (x.repeat_interleave(4, 1).double() for x in (k, v))
    check(out, (q.double() @ k.mT * 0.25 + bias).softmax(-1) @ v, 2)


@pytest.mark.long
@pytest.mark.parametrize("rows", [1, 100, 200])
def test_rows_that_fill_no_tile(rows):
    """Tiles have zeros behind the last row, and store nothing there."""
    q, k, v = operands(rows, 192, 64, 64)
    mask = blocks(256, 192, (128, 64), 0.8).flip(0)[:rows]
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(128, 64))
    out, lse = tiled(attend_lse, q, k, v, pattern)(q, k, v, pattern)
    check(out, dense(q, k, v, mask), 2)
    torch.testing.assert_close(lse.double(), lse_of(q, k, mask))


@pytest.mark.long
def test_masks_of_coordinates():
    q, k, v = operands(192, 192, 64, 64)
    pattern = lacis.Pattern.from_mask(blocks(192, 192, share=1.0), SQUARE)
    out = tiled(lacis.kernel(masked), q, k, v, pattern)(q, k, v, pattern)
    mask = blocks(192, 192, share=1.0) & torch.ones(192, 192).tril().bool()
    check(out, dense(q, k, v, mask), 2)


I, J = ("index", "i"), ("index", "j")
CONDITIONS = {
    "before": (("gt", I, J), lambda i, j: i > j),
    "near": (("le", ("abs", ("sub", I, J)), ("number", 70.0)), lambda i, j: (i - j).abs() <= 70),
    "far": (("lt", ("number", 70.0), ("abs", ("sub", ("neg", I), ("neg", J)))), lambda i, j: (i - j).abs() > 70),
    "both": (
        ("and", ("ge", ("mul", I, ("number", 2.0)), J), ("lt", ("mul", I, ("number", -1.0)), ("number", -9.0))),
        lambda i, j: (2 * i >= j) & (i > 9),
    ),
    "either": (
        ("or", ("ge", ("maximum", I, J), ("number", 128.0)), ("lt", J, I)),
        lambda i, j: (i >= 128) | (j >= 128) | (j < i),
    ),
    "even": (("eq", ("sub", I, J), ("number", 0.0)), lambda i, j: i == j),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_are_asked_of_whole_tiles(name):
    """Of those that bounds of coordinates can decide."""
    condition, exact = CONDITIONS[name]

    def chosen(q, k, v, pattern):
        s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.25
        s = combine("where", Traced(s.trace, (), condition, s.letters, True), s, -math.inf)
        return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v)

    q, k, v = operands(256, 192, 64, 64)
    mask = blocks(256, 192, share=0.8)
    pattern = lacis.Pattern.from_mask(mask, SQUARE)
    kernel = tiled(lacis.kernel(chosen), q, k, v, pattern)
    assert ("scf.if" in kernel.asm["tiles"]) == (name != "even")
    check(kernel(q, k, v, pattern), dense(q, k, v, mask & exact(torch.arange(256)[:, None], torch.arange(192))), 2)


def pattern_of(share=1.0, format=SQUARE, columns=128):
    mask = torch.ones(128, columns).bool()
    mask[::3, ::5] = share == 1.0
    return lacis.Pattern.from_mask(mask, format)


def unbounded(q, k, v, pattern):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k)
    return lacis.einsum("hij,hje->hie", s, v)


def biased(q, k, v, pattern):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) + v.at("hij")
    return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), k)


def doubled(q, k, v, pattern):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) + lacis.einsum("ij,hid,hjd->hij", pattern, q, v)
    return lacis.einsum("hij,hje->hie", lacis.softmax(s * 0.25, "j"), v)


@pytest.mark.long
def test_scores_of_two_products():
    q, k, v = operands(128, 192, 64, 64)
    mask = blocks(128, 192)
    pattern = lacis.Pattern.from_mask(mask, SQUARE)
    check(
        tiled(lacis.kernel(doubled), q, k, v, pattern)(q, k, v, pattern), dense(q, (k.float() + v.float()), v, mask), 2
    )


@pytest.mark.long
def test_scores_that_read_elements_of_an_operand():
    q, k, v = operands(128, 128, 128, 128)
    mask = blocks(128, 128)
    pattern = lacis.Pattern.from_mask(mask, SQUARE)
    scores = (torch.einsum("hid,hjd->hij", q.double(), k.double()) + v).masked_fill(~mask, -math.inf)
    want = scores.softmax(-1).nan_to_num(0.0) @ k.double()
    check(tiled(lacis.kernel(biased), q, k, v, pattern)(q, k, v, pattern), want, 2)


@pytest.mark.long
def test_sums_without_a_maximum():
    q, k, v = operands(192, 256, 64, 64)
    mask = blocks(192, 256)
    pattern = lacis.Pattern.from_mask(mask, SQUARE)
    out = tiled(lacis.kernel(unbounded), q, k, v, pattern)(q, k, v, pattern)
    check(out, (q.double() @ k.double().mT * mask) @ v.double(), 2)


def test_axes_of_a_batch_stay_apart():
    """A map has each of them, so that an operand may be strided."""

    @lacis.kernel
    def attend(q, k, v, pattern):
        scores = lacis.einsum("ij,bhid,bhjd->bhij", pattern, q, k) * 0.25
        return lacis.einsum("bhij,bhje->bhie", lacis.softmax(scores, "j"), v)

    q, k, v = (torch.stack([x, 2 * x]) for x in operands(192, 256, 64, 64, heads=3))
    mask = blocks(192, 256)
    given = q, k, v, lacis.Pattern.from_mask(mask, SQUARE)
    assert "cp.async.bulk.tensor.4d.shared" in attend.compile(*given, target=TARGET).asm["ptx"]
    scores = (q.double() @ k.double().mT * 0.25).masked_fill(~mask, -math.inf)
    check(tiled(attend, *given)(*given), scores.softmax(-1).nan_to_num(0.0) @ v.double())

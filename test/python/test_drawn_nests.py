# SPDX-License-Identifier: Apache-2.0
"""Marked nests at random: steps of GPUs with other tiles, stages, layouts and lists, in plain loops against float64."""

import dataclasses
import random

import pytest
import tally
import torch
from drawn_steps import drawn_blocks, drawn_kernel, drawn_width
from test_out_dtype import BITS, is_near

import lacis
from lacis.capture import Epilogue

SHARDS, DRAWS = 10, 50
ORDERS = ("ij,bj->bi", "ij,bi->bj", "ij,jb->ib", "ij,ib->jb", "ij,jb->bi", "ij,bj->ib")
FORMATS = (lacis.Bsr, lacis.Bcsc, lacis.BlockedEll)


def drawn_step(draw, step):
    """The step with other numbers; of a layout the values may be copied."""
    name = step.mnemonic
    if name == "balance":
        cut = draw.choice((None, None, 1, 3))
        return dataclasses.replace(step, raster=draw.randint(1, 8), groups=draw.randint(1, 16), cut=cut)
    if name == "pipeline":
        return dataclasses.replace(step, stages=draw.randint(2, 6))
    if name == "split" and step.loop == "b":
        return dataclasses.replace(step, factor=8 * draw.randint(1, step.factor // 8))
    if name == "regroup" and step.capacity:
        return dataclasses.replace(step, capacity=draw.randint(1, 24))
    if name == "regroup" and draw.random() < 0.3:
        return dataclasses.replace(step, layout=step.layout.replace(" link,", ""))
    return step


def drawn_problem(draw):
    """A packed weight, the dense operand, an epilogue, and the result in float64."""
    expression = draw.choice(ORDERS)
    block = draw.choice([(n, n) for n in (8, 16, 32, 64, 128, 192)] + [(64, 128), (32, 16), (256, 64)])
    format = draw.choice(FORMATS)(*block)
    if draw.random() < 0.2:
        format, block = drawn_blocks(draw)
    rows, columns, tokens = 8 * draw.randint(1, 70), 8 * draw.randint(1, 70), 8 * draw.randint(1, 50)
    kept = torch.rand(-(-rows // block[0]), -(-columns // block[1])) < draw.choice((0.0, 0.3, 0.7, 1.0))
    kept = kept.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
    dtype = draw.choice((torch.bfloat16, torch.float16))
    weight = (torch.randn(rows, columns) * kept).to(dtype)
    dense, output = expression[3:5], expression[7:]
    sizes = {"i": rows, "j": columns, "b": tokens}
    x = torch.randn(*(sizes[letter] for letter in dense)).to(dtype)
    shape, across = [sizes[letter] for letter in output], output.replace("b", "")
    bias, residual = torch.randn(sizes[across]).to(dtype), torch.randn(*shape).to(dtype)
    after = Epilogue(
        bias=draw.choice((None, bias)), activation=draw.choice((None, "relu")), residual=draw.choice((None, residual))
    )
    want = torch.einsum(expression, weight.double(), x.double())
    if after.bias is not None:
        want = want + (bias.double() if output[1] == across else bias.double()[:, None])
    want = torch.relu(want) if after.activation else want
    want = want + residual.double() if after.residual is not None else want
    packed = lacis.pack(weight, drawn_width(draw, format))
    return expression, packed, x, dataclasses.replace(after, bias_axis=across), want


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_any_nest_has_the_numbers_of_its_loops(shard):
    """A nest that tiles cannot take is refused with a reason."""
    draw = random.Random(1000 * tally.SEED + shard)
    torch.manual_seed(draw.randrange(2**31))
    for _ in range(DRAWS):
        expression, packed, x, after, want = drawn_problem(draw)
        after = after if after.bias is not None else dataclasses.replace(after, bias_axis=None)
        reason = "in a row of a tile, which are no whole lines of 64"
        kernel, case = drawn_kernel(draw, expression, [packed, x], after, drawn_step, "nests", reason)
        if kernel is None:
            continue
        got = kernel(packed, x)
        assert is_near(got, want, BITS[got.dtype]), case
        assert torch.equal(got, kernel(packed, x)), case

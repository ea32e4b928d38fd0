# SPDX-License-Identifier: Apache-2.0
"""Products sampled on stored blocks at random: steps of GPUs with other shares, parts and stages, in plain loops."""

import dataclasses
import functools
import random

import pytest
import tally
import torch
from drawn_steps import drawn_blocks, drawn_kernel, drawn_width
from test_out_dtype import BITS, is_near

import lacis
from lacis.capture import Epilogue

SHARDS, DRAWS = 10, 30
ORDERS = ("ij,bi,bj->ij", "ij,ib,jb->ij", "ij,bi,jb->ij", "ij,ib,bj->ij", "ij,hbi,hbj->ij")
SQUARE = [(side, side) for side in (16, 32, 64, 128)]
BLOCKS = [*SQUARE, (16, 32), (32, 16), (16, 64), (32, 64), (64, 32), (64, 128), (128, 64)]


def drawn_step(draw, step, share):
    """The step with other numbers: `share` times as many blocks, other parts, stages and rounds."""
    name = step.mnemonic
    if name == "split" and step.loop == "i0_j0":
        return dataclasses.replace(step, factor=step.factor * share)
    if name == "split" and step.loop == "i0_j01":
        return dataclasses.replace(step, factor=step.factor * share)
    if name == "balance":
        return dataclasses.replace(step, parts=draw.choice((None, 2, 3, 8)) if step.parts else None)
    if name == "pipeline":
        return dataclasses.replace(step, stages=draw.randint(2, 5))
    if name == "split" and step.loop == "b":
        return dataclasses.replace(step, factor=draw.choice((step.factor, 16)))
    return step


def drawn_problem(draw):
    """A pattern, two dense operands, an epilogue, and the values in float64 as a dense matrix."""
    expression, block = draw.choice(ORDERS), draw.choice(BLOCKS)
    format = lacis.Bsr(*block)
    if draw.random() < 0.2:
        format, block = drawn_blocks(draw)
    rows, columns, tokens = 8 * draw.randint(1, 140), 8 * draw.randint(1, 140), 8 * draw.randint(1, 40)
    scaled = draw.random() < 0.3
    if scaled:  # what follows a sum stores no zeros behind the sizes
        rows, columns = -(-rows // block[0]) * block[0], -(-columns // block[1]) * block[1]
    kept = torch.rand(-(-rows // block[0]), -(-columns // block[1])) < draw.choice((0.0, 0.06, 0.3, 0.7, 1.0))
    mask = kept.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
    dtype = draw.choice((torch.bfloat16, torch.float16))
    pattern = lacis.pack(mask.to(dtype), drawn_width(draw, format)).pattern
    sizes = {"i": rows, "j": columns, "b": tokens, "h": 3}
    left, right = expression.split("->")[0].split(",")[1:]
    one, other = (torch.randn(*(sizes[letter] for letter in operand)).to(dtype) for operand in (left, right))
    product = f"{left},{right}->{expression.split('->')[1]}"
    want = torch.einsum(product, one.double(), other.double()) * (0.5 if scaled else 1.0)
    return expression, pattern, one, other, Epilogue(scale=0.5) if scaled else Epilogue(), want * mask


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_any_share_has_the_numbers_of_its_loops(shard):
    """Steps that do not go with each other are refused with a reason."""
    draw = random.Random(1000 * tally.SEED + shard)
    torch.manual_seed(draw.randrange(2**31))
    for _ in range(DRAWS):
        expression, pattern, one, other, after, want = drawn_problem(draw)
        share = draw.choice((1, 1, 2))
        step_of = functools.partial(drawn_step, share=share)
        kernel, case = drawn_kernel(draw, expression, [pattern, one, other], after, step_of, "samples", "tiles:")
        if kernel is None:
            continue
        got = kernel(pattern, one, other)
        assert is_near(got.to_dense(), want, BITS[got.dtype]), case
        assert torch.equal(got.values, kernel(pattern, one, other).values), case

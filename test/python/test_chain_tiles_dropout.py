# SPDX-License-Identifier: Apache-2.0
"""Dropout on tiles: every element has the random bits of its own place, forward and in both gradients."""

import functools
import math

import pytest
import torch
from test_chain_tiles import TARGET, blocks, check, operands, tiled

import lacis
from lacis.attentions.dropout import TracedDropout
from lacis.attentions.fused_kernels import Kernels
from lacis.attentions.walks import by_columns
from lacis.capture.philox import random_bits
from lacis.runtime import ptxas
from lacis.runtime.chain import ChainFunction

BATCH, HEADS, RATE = 2, 2, 0.3
SEED = torch.tensor(-(2**40) + 12345)
I, J, H, TWO = ("index", "i"), ("index", "j"), ("index", "h"), ("number", 2.0)
BODIES = {"plain": ("read", 0), "causal": ("where", ("le", J, I), ("read", 0), ("number", -math.inf))}
NAMES = ("q", "k", "v", "lse", "arrived", "delta", "pattern")


def bits(rows, columns):
    """Of batches and heads that are one axis."""
    sizes = BATCH, HEADS, rows, columns
    return random_bits(SEED, *torch.meshgrid(*map(torch.arange, sizes), indexing="ij")).flatten(0, 1)


def made(rows, columns, depth, side, dtype=torch.bfloat16, body="plain"):
    """The kernels, their operands and pattern; output and gradients by float64."""
    q, k, v = operands(rows, columns, depth, depth, dtype, heads=BATCH * HEADS)
    mask = blocks(rows, columns, (side, side))
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(side, side))
    mask = mask & (torch.ones(rows, columns).tril() > 0 if body == "causal" else True)
    inputs = [x.double().requires_grad_() for x in (q, k, v)]
    scores = (torch.einsum("hid,hjd->hij", *inputs[:2]) * 0.25).masked_fill(~mask, -math.inf)
    kept = bits(rows, columns) >= round(RATE * 2**32)
    out = (scores.softmax(-1).nan_to_num(0.0) * kept / (1 - RATE)) @ inputs[2]
    arrived = torch.randn(BATCH * HEADS, rows, depth).to(dtype)
    want = [x.nan_to_num(0.0) for x in torch.autograd.grad(out, inputs, arrived.double())]
    lse = scores.detach().logsumexp(-1)
    lse = torch.where(lse.isneginf(), 0, lse).float()
    given = q, k, v, lse, arrived, (out.detach() * arrived).sum(-1).float()
    dropout = TracedDropout(RATE, (("floordiv", H, TWO), ("mod", H, TWO), I, J))
    return Kernels("h", "h", 0.25, BODIES[body], (), "", dropout), given, pattern, out.detach(), want


def chains(kernels, given, pattern, want=(None,) * 4):
    """Each chain with its operands, and what it should give."""
    rows, columns = (x.batched((BATCH * HEADS,), "h") for x in (pattern, by_columns(pattern)))
    yield kernels.attention, (*given[:3], rows, SEED), want[:1]
    for method, side, wanted in ((kernels._rows, rows, want[1:2]), (kernels._columns, columns, want[2:])):
        function = functools.update_wrapper(functools.partial(method, (True, ())), method)
        yield ChainFunction(function, (*NAMES, "seed"), len(wanted), "seed"), (*given, side, SEED), wanted


CASES = [(192, 256, 64, 64), (192, 192, 64, 16), (128, 128, 128, 32), (256, 384, 32, 128)]


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("rows, columns, depth, side", CASES)
def test_dropout_and_its_gradients(rows, columns, depth, side, body, dtype):
    kernels, given, pattern, out, want = made(rows, columns, depth, side, dtype, body)
    for chain, own, wanted in chains(kernels, given, pattern, (out, *want)):
        got = tiled(chain, *own)(*own)
        for one, other in zip(got if isinstance(got, tuple) else (got,), wanted):
            check(one, other, 2)


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("depth, side", [(64, 64), (64, 128), (128, 64), (128, 128), (64, 16)])
def test_code_is_assembled_without_spills(depth, side):
    """But for the gradients of keys and values of heads of 128, whose sums and shares leave no room for the words."""
    kernels, given, pattern, _, _ = made(256, 256, depth, side, body="causal")
    for chain, own, wanted in chains(kernels, given, pattern):
        if depth < 128 or len(wanted) == 1:
            text = chain.compile(*own, target=TARGET).text
            lacis._core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})

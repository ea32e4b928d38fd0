# SPDX-License-Identifier: Apache-2.0
"""Scores on tiles that read tensors: numbers of heads, vectors of queries and keys, elements; forward and gradients."""

import functools
import math
import sys

import pytest
import torch
from test_chain_tiles import TARGET, blocks, check, operands, tiled

import lacis
from lacis.attentions.fused_kernels import Kernels
from lacis.attentions.walks import by_columns
from lacis.runtime import ptxas
from lacis.runtime.chain import ChainFunction

HEADS, ROWS, COLUMNS, DEPTH = 2, 192, 256, 64
H, I, J, S, X, Y = ("index", "h"), ("index", "i"), ("index", "j"), ("read", 0), ("read", 1), ("read", 2)


def kept(condition):
    return "where", condition, S, ("number", -math.inf)


def masked(s, where):
    return s.masked_fill(~where.expand_as(s), -math.inf)


def numbered(length, step):
    return torch.arange(length).div(step).floor().expand(HEADS, length).contiguous()


# What becomes of a score; the letters of the tensors that it reads, None of tables; these; the same by torch.
CASES = {
    "slopes": (("add", S, ("mul", X, ("sub", J, I))), ("h",), lambda: [torch.rand(HEADS) * 0.1],
               lambda s, i, j, x: s + x[:, None, None] * (j - i)),
    "lengths": (kept(("lt", J, X)), ("h",), lambda: [torch.tensor([100.0, 250.0])],
                lambda s, i, j, x: masked(s, j < x[:, None, None])),
    "padding": (kept(("ne", X, ("number", 0.0))), ("hj",), lambda: [(torch.rand(HEADS, COLUMNS) < 0.7).float()],
                lambda s, i, j, x: masked(s, x[:, None] != 0)),
    "bias of keys": (("add", S, X), ("hj",), lambda: [torch.randn(HEADS, COLUMNS)], lambda s, i, j, x: s + x[:, None]),
    "of all heads": (("add", S, X), ("j",), lambda: [torch.randn(COLUMNS)], lambda s, i, j, x: s + x),
    "scale of queries": (("mul", S, X), ("hi",), lambda: [torch.rand(HEADS, ROWS)],
                         lambda s, i, j, x: s * x[:, :, None]),
    "documents": (kept(("eq", X, Y)), ("hi", "hj"), lambda: [numbered(ROWS, 50), numbered(COLUMNS, 60)],
                  lambda s, i, j, x, y: masked(s, x[:, :, None] == y[:, None])),
    "bias": (("add", S, X), ("hij",), lambda: [torch.randn(HEADS, ROWS, COLUMNS)], lambda s, i, j, x: s + x),
    "half bias": (("where", ("le", J, ("add", I, ("number", 64.0))), ("add", S, X), ("number", -math.inf)), ("ij",),
                  lambda: [torch.randn(ROWS, COLUMNS).bfloat16()],
                  lambda s, i, j, x: masked(s + x, j <= i + 64)),
    "bias and slopes": (("add", ("mul", S, X), Y), ("hi", "ij"),
                        lambda: [torch.rand(HEADS, ROWS), torch.randn(ROWS, COLUMNS)],
                        lambda s, i, j, x, y: s * x[:, :, None] + y),
    "table": (("add", S, ("element", X, H, ("add", ("sub", I, J), ("number", COLUMNS - 1.0)))), (None,),
              lambda: [torch.randn(HEADS, ROWS + COLUMNS - 1)], lambda s, i, j, x: s + x[:, i - j + COLUMNS - 1]),
    "table from its end": (("mul", ("add", S, ("element", X, H, ("end", ("sub", I, J)))), Y), (None, "hi"),
                           lambda: [torch.randn(HEADS, COLUMNS), torch.rand(HEADS, ROWS)],
                           lambda s, i, j, x, y: (s + x[:, i - j]) * y[:, :, None]),
    "clipped table": (("add", S, ("element", X, ("minimum", ("abs", ("sub", I, J)), ("number", 8.0)))), (None,),
                      lambda: [torch.randn(9)], lambda s, i, j, x: s + x[(i - j).abs().clamp(max=8)]),
    "norms of keys": (("div", S, X), ("hj",), lambda: [torch.rand(HEADS, COLUMNS) + 0.5],
                      lambda s, i, j, x: s / x[:, None]),
    "soft cap": (("mul", ("number", 2.0), ("tanh", ("div", S, ("number", 2.0)))), (), list,
                 lambda s, i, j: 2 * torch.tanh(s / 2)),
}  # fmt: skip
NAMES = ("q", "k", "v", "lse", "arrived", "delta", "pattern")


def made(case, side):
    """The kernels, the operands, the pattern and the tensors that are read; output and gradients by float64."""
    body, letters, drawn, change = CASES[case]
    q, k, v = operands(ROWS, COLUMNS, DEPTH, DEPTH, heads=HEADS)
    tensors, mask = drawn(), blocks(ROWS, COLUMNS, (side, side))
    inputs = [x.double().requires_grad_() for x in (q, k, v, *tensors)]
    scores = torch.einsum("hid,hjd->hij", *inputs[:2]) * 0.25
    changed = change(scores, torch.arange(ROWS)[:, None], torch.arange(COLUMNS), *inputs[3:])
    changed = changed.masked_fill(~mask, -math.inf)
    out, lse = changed.softmax(-1).nan_to_num(0.0) @ inputs[2], changed.detach().logsumexp(-1)
    arrived = torch.randn(HEADS, ROWS, DEPTH).bfloat16()
    want = torch.autograd.grad(out, inputs, arrived.double(), allow_unused=True)
    lse = torch.where(lse.isneginf(), 0, lse).float()
    given = q, k, v, lse, arrived, (out.detach() * arrived).sum(-1).float()
    letters = tuple(None if each is None else tuple(each) for each in letters)
    kernels = Kernels("h", "h", 0.25, body, letters, turns=False)
    return kernels, given, lacis.Pattern.from_mask(mask, lacis.Bsr(side, side)), tensors, out.detach(), want


def gradients(kernels, case, want):
    """By rows and by columns: the chain, whether it walks columns, and what it gives."""
    body, letters = CASES[case][:2]
    asks = [n for n, own in enumerate(letters) if body[0] != "where" and own and not {"i", "j"} <= set(own)]
    ways = (
        (kernels._rows, [n for n in asks if "j" not in letters[n]], want[:1]),
        (kernels._columns, [n for n in asks if "j" in letters[n]], want[1:3]),
    )
    for method, numbers, first in ways:
        function = functools.update_wrapper(functools.partial(method, (True, tuple(numbers))), method)
        chain = ChainFunction(function, (*NAMES, *kernels.names), rounded=len(first))
        yield chain, method == kernels._columns, [*first, *(want[3 + n] for n in numbers)]


@pytest.mark.long
@pytest.mark.parametrize("side", [64, 16])
@pytest.mark.parametrize("case", CASES)
def test_scores_that_read_tensors(case, side):
    kernels, (q, k, v, *_), pattern, tensors, want, _ = made(case, side)
    given = q, k, v, pattern.batched((HEADS,), "h"), *tensors
    out, _ = tiled(kernels.attention, *given)(*given)
    check(out, want, 2)


@pytest.mark.long
@pytest.mark.parametrize("side", [64, 16])
@pytest.mark.parametrize("case", CASES)
def test_their_gradients(case, side):
    """Those of the tensors are sums of rows and of columns, in float32."""
    kernels, given, pattern, tensors, _, want = made(case, side)
    for chain, across, wanted in gradients(kernels, case, want):
        side = (by_columns(pattern) if across else pattern).batched((HEADS,), "h")
        got = tiled(chain, *given, side, *tensors)(*given, side, *tensors)
        got = got if isinstance(got, tuple) else (got,)
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted):
            if one.dtype == torch.float32:
                one = one.double()
                one = one.sum(0) if other.shape == (COLUMNS,) else one.sum(1) if other.ndim == 1 else one
                assert (one - other).norm() <= 2**-7 * other.norm()
            else:
                check(one, other.nan_to_num(0.0), 2)


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("depth, side", [(64, 64), (64, 128), (128, 128)])
def test_code_is_assembled_without_spills(case, depth, side, monkeypatch):
    """Heads of 128: the output alone, whose rounds are wide."""
    here = sys.modules[__name__]
    monkeypatch.setattr(here, "ROWS", 256)
    monkeypatch.setattr(here, "DEPTH", depth)
    kernels, given, pattern, tensors, _, want = made(case, side)
    rows = pattern.batched((HEADS,), "h")
    chains = [(kernels.attention, (*given[:3], rows, *tensors))]
    for chain, across, _ in gradients(kernels, case, want) if depth == 64 else ():
        side = by_columns(pattern).batched((HEADS,), "h") if across else rows
        chains.append((chain, (*given, side, *tensors)))
    for chain, own in chains:
        text = chain.compile(*own, target=TARGET).text
        lacis._core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})


@pytest.mark.parametrize("case, approximate", [("soft cap", "math.tanh"), ("norms of keys", "arith.divf")])
def test_functions_are_as_exact_as_half_types_need(case, approximate):
    """No quotient by a number, one of shares by their sum, and no other function to the last place."""
    kernels, (q, k, v, *_), pattern, tensors, *_ = made(case, 64)
    given = q, k, v, pattern.batched((HEADS,), "h"), *tensors
    lines = kernels.attention.compile(*given, target=TARGET).asm["tiles"].splitlines()
    assert any(approximate in line and "<afn>" in line for line in lines)
    exact = [line for line in lines if ("arith.divf" in line or "math.tanh" in line) and "<afn>" not in line]
    assert len(exact) == 1 and "arith.divf" in exact[0]

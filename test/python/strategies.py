# SPDX-License-Identifier: Apache-2.0
"""Formats drawn at random from the grammar, and shapes, dtypes and tensors to store in them."""

from __future__ import annotations

import contextlib
import functools
import os
import unittest

import hypothesis
import pytest
import tally
import torch
from hypothesis import strategies as st
from lacis.errors import DataError
from lacis.formats import (
    Bcsc,
    BlockedEll,
    Bsr,
    Coo,
    Csc,
    Csf,
    Csr,
    Dcsr,
    Dense,
    Ell,
    Format,
    Sum,
    compose,
    decompose,
)
from lacis.formats.digit import Digit
from lacis.formats.kinds.fixed import Fixed
from lacis.formats.kinds.full import Full
from lacis.formats.kinds.implicit import Implicit
from lacis.formats.kinds.one import One
from lacis.formats.kinds.stored import Stored
from lacis.formats.kinds.var import Var
from lacis.formats.level import Level
from lacis.packing import pack

LONG = bool(os.environ.get("LACIS_TEST_LONG"))


def turns(cases, turn: int, count: int = 1) -> list:
    """All cases in the long run; here `count` of them, so that callers who count `turn` up share them out."""
    cases = list(cases)
    return cases if LONG else [cases[(turn * count + n) % len(cases)] for n in range(count)]


def mostly_long(cases, *here) -> list:
    """Parameters of a test: the cases named `here`, and the others in the long run."""
    each = lambda case: case if isinstance(case, tuple) else (case,)
    return [case if case in here else pytest.param(*each(case), marks=pytest.mark.long) for case in cases]


BLOCKS = (1, 2, 3, 4, 5, 8, 16)
FACTORS = (1, 2, 3, 4)
NEST = compose(2, [(16, 16)], [(Ell, [0, 1]), (Coo, [2, 3])])
PREDEFINED = [
    Csr(),
    Csc(),
    Coo(),
    Dcsr(),
    Ell(),
    Bsr(4, 8),
    Bcsc(4, 8),
    BlockedEll(4, 8),
    Dense(),
    Csf(2),
    NEST,
]
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)

_DENSE = (Full(), Implicit())
_COMPRESSED = (Var(), Stored())
_REPEATED = (Var(), Stored(unique=False))
_SINGLE = (One(), Stored())


@st.composite
def blocked_axes(draw, rank: int = 2, depth: int = 3) -> list[list[Digit]]:
    """The digits of each axis, outermost first: not blocked, or blocked to `depth` levels in all."""
    axes = []
    for axis in range(rank):
        digits = [Digit(axis)]
        for _ in range(draw(st.integers(1, depth)) - 1):
            innermost = digits.pop()
            fitting = [b for b in BLOCKS if b > 1 and innermost.mod % b == 0 and b < (innermost.mod or 99)]
            if not fitting:
                digits.append(innermost)
                break
            digits += innermost.block(draw(st.sampled_from(fitting)))
        axes.append(digits)
    return axes


@st.composite
def digit_orders(draw, axes, inner_first: bool = False) -> list[Digit]:
    """All digits in one order; unless `inner_first`, an axis keeps its outer digits before its inner ones."""
    if inner_first:
        return draw(st.permutations([digit for digits in axes for digit in digits]))
    turns = draw(st.permutations([n for n, digits in enumerate(axes) for _ in digits]))
    rows = [iter(digits) for digits in axes]
    return [next(rows[turn]) for turn in turns]


@st.composite
def level_lists(draw, digits, width=None) -> list[Level]:
    """Levels over digits in their order: dense, compressed, packed, fused ones, and chains of singletons.

    `width` is the width of packed levels; None draws the run-time width.
    """
    levels: list[Level] = []
    rest = list(digits)
    while rest:
        kind = draw(st.sampled_from(("dense", "dense", "compressed", "compressed", "packed", "chain", "fused")))
        take = 1 if kind not in ("chain", "fused") or len(rest) == 1 else draw(st.integers(2, min(3, len(rest))))
        mine, rest = rest[:take], rest[take:]
        if kind == "chain":
            levels.append(Level((mine[0],), *_REPEATED))
            levels += [Level((digit,), *_SINGLE) for digit in mine[1:]]
            continue
        pair = {"dense": _DENSE, "packed": (Fixed(width), Stored())}.get(kind, _COMPRESSED)
        levels.append(Level(tuple(mine), *pair))
    return levels


@st.composite
def formats(draw, rank: int = 2, depth: int = 3, inner_first: bool = False) -> Format:
    """A format of `rank` axes, each blocked up to `depth` times."""
    digits = draw(digit_orders(draw(blocked_axes(rank, depth)), inner_first))
    return Format.of(draw(level_lists(digits)))


@st.composite
def limited_formats(draw, rank: int = 2, depth: int = 2) -> Format:
    """A format with a width in its text: a part that takes what fits."""
    digits = draw(digit_orders(draw(blocked_axes(rank, depth))))
    levels = draw(level_lists(digits, width=draw(st.integers(1, 5))))
    if not any(level.extent.capacity for level in levels):
        at = draw(st.integers(0, len(levels) - 1))
        at = next((n for n in range(at, len(levels)) if not levels[n].extent.follows), 0)
        after = levels[at + 1 : at + 2]
        if after and after[0].extent.follows:
            levels[at + 1] = Level(after[0].digits, *_COMPRESSED)
        levels[at] = Level(levels[at].digits, Fixed(draw(st.integers(1, 5))), Stored())
    return Format.of(_without_loose_singletons(levels))


def _without_loose_singletons(levels):
    """Singletons whose chain was broken become compressed."""
    fixed: list[Level] = []
    for level in levels:
        open_chain = fixed and (not fixed[-1].coordinate.unique or fixed[-1].extent.follows)
        keep = not level.extent.follows or open_chain
        fixed.append(level if keep else Level(level.digits, *_COMPRESSED))
    return fixed


@st.composite
def sums(draw, rank: int = 2) -> Sum:
    """Two or three parts."""
    parts = {f"p{n}": draw(limited_formats(rank)) for n in range(draw(st.integers(1, 2)))}
    return decompose(**parts, rest=draw(formats(rank, depth=2)))


def formats_and_sums(rank: int = 2) -> st.SearchStrategy:
    return st.one_of(formats(rank), formats(rank), sums(rank))


# Examples that are drawn and no more: none is kept, and none is made smaller.
DRAWN = hypothesis.settings(
    deadline=None,
    database=None,
    phases=[hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)


@functools.lru_cache
def pool(count: int, rank: int = 2) -> list[Format | Sum]:
    """`count` formats and sums drawn at random, all different, the same ones in every test that asks."""
    found: dict[str, Format | Sum] = {}

    @hypothesis.settings(DRAWN, max_examples=3 * count)
    @hypothesis.seed(tally.SEED)
    @hypothesis.given(formats_and_sums(rank))
    def draw(format):
        if str(format) not in found and _holds_full_rows(format, rank):
            found[str(format)] = format
        if len(found) == count:
            raise unittest.SkipTest  # ends the drawing

    with contextlib.suppress(unittest.SkipTest):
        draw()
    assert len(found) == count, f"{len(found)} of {count} formats"
    return list(found.values())


# Of the 100, 20 are a linear layer's weight, 12 are one under schedules drawn at random, and 8 meet other expressions;
# the rest is for the long run, for each schedule is a kernel of its own.
POOL, SHARDS = (2500, 32) if LONG else (60, 4)
SHARES = {"schedules": (3, 8), "layers": (0,), "expressions": (2,)}  # of ten


def share(use: str, shard: int) -> list[tuple[int, Format | Sum]]:
    """The random formats of one use and of one shard, numbered; in the long run all of them."""
    formats = list(enumerate(pool(POOL)[shard::SHARDS]))
    return [(n, format) for n, format in formats if LONG or n % 10 in SHARES[use]]


def _holds_full_rows(format, rank: int) -> bool:
    """Do the widths in its text, if any, fit a tensor without zeros? Others are refused, by name."""
    try:
        pack(torch.ones((33, 39, 5)[:rank]), format)
        return True
    except DataError as error:
        if "width" not in str(error):
            raise
        return False


SIZES = st.sampled_from((0, 1, 2, 3, 5, 7, 8, 16, 17, 20, 33))


@st.composite
def tensors(draw, rank: int = 2, dtype=None) -> torch.Tensor:
    """A tensor of up to `33 ** rank` elements: empty, sparse or full, contiguous or not."""
    shape = [draw(SIZES) for _ in range(rank)]
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    density = draw(st.sampled_from((0.0, 0.05, 0.3, 1.0)))
    dtype = dtype or draw(st.sampled_from(DTYPES))
    values = torch.randn(shape, generator=generator).to(dtype)
    values = torch.where(values == 0, torch.ones_like(values), values)
    values = torch.where(torch.rand(shape, generator=generator) < density, values, 0)
    return values.mT.contiguous().mT if rank > 1 and draw(st.booleans()) else values


def sparse(*shape, density=0.3, dtype=torch.float32, seed=0) -> torch.Tensor:
    """A dense tensor with this share of non-zeros, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    keep = torch.rand(shape, generator=generator) < density
    return torch.where(keep, torch.randn(shape, generator=generator), 0).to(dtype)

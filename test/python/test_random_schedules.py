# SPDX-License-Identifier: Apache-2.0
"""Schedules drawn at random: legal ones give the numbers of the default, illegal ones are refused, none crashes."""

from __future__ import annotations

import collections
import os

import conformance
import hypothesis
import pytest
import strategies
import torch
from hypothesis import strategies as st

import lacis
from lacis import steps

# Legal schedules in this run; the long one draws ten times as many, and repeats each more often.
LONG = bool(os.environ.get("LACIS_TEST_LONG"))
SHARDS, LEGAL, REPEATS = 4, (1200 if LONG else 100), (100 if LONG else 3)
EXPRESSIONS = {
    "ij,bj->bi": ("b", "i", "j"),
    "ij,jk->ik": ("i", "k", "j"),
    "ij,j->i": ("i", "j"),
    "ij,bi->bj": ("b", "j", "i"),
}
FORMATS = [lacis.Csr(), lacis.Csc(), lacis.Coo(2), lacis.Ell(), lacis.Bsr(4, 8), lacis.BlockedEll(2, 4), lacis.Dense(2)]
FACTORS = (1, 2, 3, 4, 8, 32)
UNITS = ("block.x", "block.y", "thread.x", "thread.y", "warp", "lane")  # refused on a CPU


def loops_of(letters, format) -> list[str]:
    """Names that the nest begins with, some of which walk positions."""
    blocked = format.tile_levels > 0 and not isinstance(format, lacis.Dense)
    return [
        name
        for letter in letters
        for name in ([f"{letter}0", f"{letter}1"] if blocked and letter in "ij" else [letter])
    ]


@st.composite
def one_step(draw, names: list[str]):
    """A step on loops that may exist; `names` follows what it does."""
    loop = draw(st.sampled_from(names))
    verb = draw(
        st.sampled_from(
            (
                "split",
                "split",
                "split",
                "reorder",
                "reorder",
                "parallel",
                "vectorize",
                "jam",
                "unroll",
                "relayout",
                "fuse",
                "fuse",
                "walk",
                "split_nnz",
                "bind",
            )
        )
    )
    if verb == "split":
        names[names.index(loop) : names.index(loop) + 1] = [f"{loop}0", f"{loop}1"]
        return steps.Split(loop, draw(st.sampled_from(FACTORS)))
    if verb == "reorder":
        return steps.Reorder(*draw(st.permutations(names))[: draw(st.integers(2, 4))])
    if verb == "fuse":
        other = draw(st.sampled_from(names))
        if other != loop:
            names[:] = [f"{loop}_{other}", *(name for name in names if name not in (loop, other))]
        return steps.Fuse(loop, other)
    if verb == "split_nnz":
        rows, entries = draw(st.sampled_from(("ij", "ij", "ji", ("i0", "j0"), ("i0", "j0"), ("j0", "i0"))))
        names += [f"{rows}_{entries}0", f"{rows}_{entries}.{rows}"]
        return steps.SplitNnz(f"{rows}_{entries}", draw(st.sampled_from((1, 4, 32))))
    if verb == "relayout":
        return steps.Relayout(draw(st.sampled_from(("0", "1", "out"))))
    if verb == "walk":
        return steps.Walk("0", *draw(st.permutations("ij"))[: draw(st.integers(1, 2))])
    if verb == "vectorize":
        return steps.Vectorize(loop, draw(st.sampled_from(FACTORS)))
    if verb == "bind":
        return steps.Bind(loop, draw(st.sampled_from(UNITS)))
    if verb == "unroll":
        return steps.Unroll(loop, draw(st.sampled_from((None, 1, 2, 4))))
    return {"parallel": steps.Parallel, "jam": steps.Jam}[verb](loop)


@st.composite
def schedules(draw):
    expression = draw(st.sampled_from(list(EXPRESSIONS)))
    format = draw(st.sampled_from(FORMATS))
    names = loops_of(EXPRESSIONS[expression], format)
    return expression, format, [draw(one_step(names)) for _ in range(draw(st.integers(1, 5)))]


def operands(expression, format):
    w = strategies.sparse(19, 23, seed=1)
    letters = dict(zip("ij", w.shape), b=7, k=7)
    second = expression.split(",")[1].split("->")[0]
    x = torch.randn([letters[letter] for letter in second], generator=torch.Generator().manual_seed(2))
    expected = torch.einsum(expression, w.double(), x.double())
    return lacis.pack(w.to(conformance.DEVICE), format), x.to(conformance.DEVICE), expected


@pytest.mark.parametrize("shard", range(SHARDS))
def test_schedules_change_no_number(shard):
    outcomes = collections.Counter()

    @hypothesis.seed(shard)
    @hypothesis.settings(
        max_examples=40 * LEGAL // SHARDS,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(schedules())
    def draw(schedule):
        if outcomes["legal"] >= LEGAL // SHARDS:
            return
        expression, format, chosen = schedule
        packed, x, expected = operands(expression, format)
        try:
            kernel = lacis.compile(expression, packed, x, steps=chosen)
        except lacis.CompileError as error:
            assert "error: " in error.message and "PLEASE submit" not in error.message, chosen
            outcomes[error.message.split("error: ")[1].split(":")[0]] += 1
            return
        outcomes["legal"] += 1
        y = kernel(packed, x)
        torch.testing.assert_close(y.double().cpu(), expected, rtol=1e-4, atol=1e-4, msg=lambda m: f"{schedule}: {m}")
        assert all(torch.equal(y, kernel(packed, x)) for _ in range(REPEATS)), chosen
        assert kernel.steps[: len(chosen)] == tuple(chosen)

    draw()
    print(dict(outcomes))
    assert outcomes["legal"] >= LEGAL // SHARDS, outcomes
    assert len(outcomes) > 5, "refusals of many verbs"

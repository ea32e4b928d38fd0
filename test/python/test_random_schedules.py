# SPDX-License-Identifier: Apache-2.0
"""Schedules drawn at random: legal ones give the numbers of the default, illegal ones are refused, none crashes."""

from __future__ import annotations

import collections
import contextlib
import random
import re

import conformance
import hypothesis
import pytest
import strategies
import tally
import torch
from hypothesis import strategies as st
from test_ptx import assemble

import lacis
from lacis import steps

# 20 legal schedules of layers in this run; in the long one more, einsums too, and each repeated more often.
SHARDS, LEGAL, REPEATS = strategies.SHARDS, 1280, (100 if strategies.LONG else 3)
EXPRESSIONS = {
    "ij,bj->bi": ("b", "i", "j"),
    "ij,jk->ik": ("i", "k", "j"),
    "ij,j->i": ("i", "j"),
    "ij,bi->bj": ("b", "j", "i"),
    "ij,ib,jb->ij": ("i", "j", "b"),
    "ij,bi,bj->ij": ("i", "j", "b"),
}
FORMATS = [lacis.Csr(), lacis.Csc(), lacis.Coo(2), lacis.Ell(), lacis.Bsr(4, 8), lacis.BlockedEll(2, 4), lacis.Dense(2)]
FACTORS = (1, 2, 3, 4, 5, 6, 8, 16, 32)
CLASSES = (1, 2, 4, 8, 16)  # sizes are odd multiples of these: a factor divides some and others not
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
def one_step(draw, names: list[str], operands=("0", "1", "out")):
    """A step on loops that may exist; `names` follows what it does."""
    loop = draw(st.sampled_from(names))
    verb = draw(
        st.sampled_from(
            (
                "split",
                "split",
                "strips",
                "reorder",
                "reorder",
                "parallel",
                "vectorize",
                "jam",
                "unroll",
                "relayout",
                "compute_at",
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
    if verb == "strips":  # a strip of a strip, whole or not
        names[names.index(loop) : names.index(loop) + 1] = [f"{loop}0", f"{loop}10", f"{loop}11"]
        width = draw(st.sampled_from(FACTORS))
        strips = (steps.Split(loop, draw(st.sampled_from(FACTORS))), steps.Split(f"{loop}1", width))
        return (*strips, steps.Vectorize(f"{loop}11", width)) if draw(st.booleans()) else strips
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
        return steps.Relayout(draw(st.sampled_from(operands)))
    if verb == "compute_at":
        return steps.ComputeAt("out", loop)
    if verb == "walk":
        return steps.Walk(operands[0], *draw(st.permutations("ij"))[: draw(st.integers(1, 2))])
    if verb == "vectorize":
        return steps.Vectorize(loop, draw(st.sampled_from(FACTORS)))
    if verb == "bind":
        return steps.Bind(loop, draw(st.sampled_from(UNITS)))
    if verb == "unroll":
        return steps.Unroll(loop, draw(st.sampled_from((None, 1, 2, 4))))
    return {"parallel": steps.Parallel, "jam": steps.Jam}[verb](loop)


@st.composite
def step_lists(draw, names: list[str], *rest):
    """Up to five draws of a step, or of two that belong together."""
    found = [draw(one_step(names, *rest)) for _ in range(draw(st.integers(1, 5)))]
    return [step for each in found for step in (each if isinstance(each, tuple) else (each,))]


@st.composite
def schedules(draw):
    expression = draw(st.sampled_from(list(EXPRESSIONS)))
    format = draw(st.sampled_from(FORMATS))
    names = loops_of(EXPRESSIONS[expression], format)
    sizes = [draw(st.sampled_from(CLASSES)) * draw(st.sampled_from((1, 3, 5))) for _ in range(3)]
    return expression, format, draw(step_lists(names)), sizes, draw(st.booleans())


def operands(expression, format, sizes):
    """The packed operand, or its pattern where the output has it; the others; what is to come out."""
    w = strategies.sparse(*sizes[:2], seed=1)
    letters, generator = dict(zip("ijbk", [*sizes, sizes[2]])), torch.Generator().manual_seed(2)
    given, output = expression.split("->")
    dense = [torch.randn([letters[one] for one in term], generator=generator) for term in given.split(",")[1:]]
    is_sampled = output == "ij"
    first = (w != 0) if is_sampled else w
    expected = torch.einsum(expression, first.double(), *(x.double() for x in dense))
    packed = lacis.pack(w.to(conformance.DEVICE), format)
    return (packed.pattern if is_sampled else packed, *(x.to(conformance.DEVICE) for x in dense)), expected


def drawn(examples, seed, *arguments):
    """A property that `examples` draws must have, the same draws for the same seed."""
    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )

    def run(check):
        settings(hypothesis.seed(1000 * tally.SEED + seed)(hypothesis.given(*arguments)(lambda draw: check(draw))))()

    return run


def refused(outcomes, error, chosen):
    assert "error: " in error.message and "PLEASE submit" not in error.message, chosen
    outcomes[error.message.split("error: ")[1].split(":")[0]] += 1


@contextlib.contextmanager
def checked(wanted: bool):
    """Kernels that look at every access, or those that do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LACIS_DEBUG", str(int(wanted)))
        yield


def loops_in(format, dtype, shape) -> list[str]:
    """The loops of a linear layer, as a refusal names them."""
    with pytest.raises(lacis.CompileError) as caught:
        conformance.layer(torch.ones(shape, dtype=dtype), format, steps=[steps.Split("?", 2)])
    return re.findall(r"'([^']*)'", caught.value.message.split("loops here are")[1])


@pytest.mark.parametrize("shard", range(SHARDS))
def test_layers_under_schedules(shard):
    """A tenth of the random formats, each under a schedule drawn for it."""
    formats, outcomes = strategies.share("schedules", shard), collections.Counter()
    for n, format in formats:
        layer_under_a_schedule(format, conformance.dtype_of(shard), n, outcomes)
    assert outcomes["legal"] == len(formats) >= 3 and len(outcomes) > 3, outcomes
    assert outcomes["assembled"] >= len(formats) // 2, outcomes


@st.composite
def layer_schedules(draw, names: list[str]):
    return draw(step_lists(list(names), ("w", "x", "y")))


def layer_under_a_schedule(format, dtype, n: int, outcomes) -> None:
    """In a class of sizes of its own; every other one is checked."""
    unit, has_bias = CLASSES[n // 2 % len(CLASSES)], n % 4 == 1
    shape, drawn_for_it = conformance.of_class((17, 23), unit), []
    w, bias = torch.ones(shape, dtype=dtype), torch.zeros(shape[0], dtype=dtype) if has_bias else None
    drawn(60, n, layer_schedules(loops_in(format, dtype, shape)))(drawn_for_it.append)
    random.Random(n).shuffle(drawn_for_it)  # hypothesis begins with the simplest
    for chosen in drawn_for_it:
        with checked(n // 4 % 2 == 0):
            try:
                conformance.layer(w, format, bias, chosen)
            except lacis.CompileError as error:
                refused(outcomes, error, chosen)
                continue
            outcomes["legal"] += 1
            conformance.run(format, dtype, n, conformance.ODD_SHAPES, (has_bias,), chosen, REPEATS, unit)
            tally.counts[f"schedules ({REPEATS} times each)"] += 1
            assemble_under_a_schedule(format, dtype, has_bias, chosen, outcomes, shape)
        return


def assemble_under_a_schedule(format, dtype, has_bias: bool, chosen, outcomes, shape) -> None:
    """The same steps for a GPU: assembled, or refused with a message."""
    try:
        assemble(format, dtype, has_bias, "cuda:sm_90a", steps=chosen, shape=shape)
        outcomes["assembled"] += 1
    except lacis.CompileError as error:
        refused(outcomes, error, chosen)


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_schedules_change_no_number(shard):
    outcomes = collections.Counter()

    @drawn(40 * LEGAL // SHARDS, shard, schedules())
    def draw(schedule):
        if outcomes["legal"] >= LEGAL // SHARDS:
            return
        expression, format, chosen, sizes, is_checked = schedule
        given, expected = operands(expression, format, sizes)
        with checked(is_checked):
            try:
                kernel = lacis.compile(expression, *given, steps=chosen)
            except lacis.CompileError as error:
                return refused(outcomes, error, chosen)
            outcomes["legal"] += 1
            y = kernel(*given).to_dense()
            same = all(torch.equal(y, kernel(*given).to_dense()) for _ in range(REPEATS))
        torch.testing.assert_close(y.double().cpu(), expected, rtol=1e-4, atol=1e-4, msg=lambda m: f"{schedule}: {m}")
        assert same, chosen
        assert all(step in kernel.steps or step.mnemonic == "reorder" for step in chosen), "part of a longer order"
        tally.counts[f"schedules ({REPEATS} times each)"] += 1

    assert outcomes["legal"] >= LEGAL // SHARDS, outcomes
    assert len(outcomes) > 5, "refusals of many verbs"

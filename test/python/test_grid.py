# SPDX-License-Identifier: Apache-2.0
"""The grid: every extent with every coordinate, plain, in blocks that do not divide and over several axes, multiplied.

What is refused stands in a table with its sentence (`refused.py`): a refusal that is not there fails, and an entry that
refuses nothing.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grid
import lacis
import pytest
import refused
import tally
import torch
from lacis.formats import Format
from lacis.formats.widths import without_widths
from lacis.packing import PackedTensor, pack
from lacis.runtime import ptxas
from strategies import LONG, sparse

RANKS = tuple(grid.EXPRESSIONS)
SHARDS = 24
HERE = {1: 1, 2: 2, 3: 1}  # kernels of the quick suite
OPT = shutil.which("lacis-opt", path=Path(sys.executable).parent) or shutil.which("lacis-opt")


PIECES = [(rank, shard) for rank in RANKS for shard in range(SHARDS if LONG else 1)]


def pieces(here: int, rank: int, shard: int) -> list:
    """The cases of a shard; in the quick suite the first `here` of an order that the seed draws."""
    found = grid.cases(rank)
    random.Random(tally.SEED).shuffle(found)
    return found[shard::SHARDS] if LONG else found[:here]


def right(faults) -> None:
    found = [fault for fault in faults if fault]
    assert not found, f"{len(found)} faults:\n" + "\n".join(found)


def test_every_kind_has_its_place():
    levels = [level for rank in RANKS for format in grid.formats(rank) for level in format.levels]
    assert {level.extent.name for level in levels} == {*grid.own(grid.EXTENTS)} - {"link"}
    assert {level.coordinate.name for level in levels} == {*grid.own(grid.COORDINATES)} - {"link"}
    assert {level.kind for level in levels} > {"@my_runs", "@my_hash", "var2*delta", "fixed*bitmap", "structured"}
    assert all(len(grid.formats(rank)) > least for rank, least in zip(RANKS, (100, 490, 390)))


@pytest.mark.parametrize("rank", RANKS)
def test_what_the_grammar_refuses(rank):
    right(grid.fault(text, refused.PARSE, lambda: Format.parse(text)) for text in grid.candidates(rank))


@pytest.mark.parametrize("rank", RANKS)
def test_a_format_without_widths_is_one(rank):
    for format in grid.formats(rank):
        text = without_widths(format).text
        assert Format.parse(text.removeprefix("#lacis.format")[1:-1]) == without_widths(format), text


@pytest.mark.skipif(OPT is None, reason="lacis-opt is not built")
@pytest.mark.parametrize("rank", RANKS)
def test_the_compiler_refuses_the_same_text(rank):
    texts = [text for text in grid.candidates(rank) if "@" not in text]
    dims = "?x" * rank
    lines = [f"func.func private @f(tensor<{dims}f32, #lacis.format<{text}>>)\n// -----" for text in texts]
    result = subprocess.run(
        [OPT, "-split-input-file", "-"], input="\n".join(lines), capture_output=True, text=True, timeout=300
    )
    places = {int(line) // 2 for line in re.findall(r"^\S+?:(\d+):\d+: error", result.stderr, re.MULTILINE)}
    mine = {n for n, text in enumerate(texts) if refused.expected(text, refused.PARSE)}
    assert {texts[n] for n in places ^ mine} == set()


def test_each_entry_of_the_table_refuses_something():
    operations = {(text, refused.PARSE) for rank in RANKS for text in grid.candidates(rank)}
    operations |= {(text, refused.PACK) for rank in RANKS for text in grid.formats(rank).values()}
    for target in ("eager", "cpu", "ptx"):
        operations |= {(text, f"{target} {each}") for rank in RANKS for text, each, _ in grid.cases(rank)}
    assert {*refused.REFUSED} - {refused.expected(*each) for each in operations} == set()


@pytest.mark.parametrize("rank", RANKS)
def test_what_is_packed_is_read_again(rank):
    texts = list(grid.formats(rank).values())[:: 1 if LONG else 12 * rank]
    right(grid.fault(text, refused.PACK, lambda: round_trip(text, rank)) for text in texts)


def round_trip(text: str, rank: int) -> None:
    format = Format.parse(text)
    for density in (1.0, 0.2):
        for sizes in (*grid.sizes(rank)[:2], grid.sizes(rank)[-1]):
            w = sparse(*(sizes[axis] for axis in grid.AXES[:rank]), density=density, dtype=torch.float64)
            packed = pack(w, format).validate()
            assert torch.equal(packed.to_dense(), w), (sizes, density)
            assert format.batch or torch.equal(packed.pattern.to_mask(), w != 0), (sizes, density)
            again = PackedTensor.from_storage(packed.format, packed.shape, packed.tensors)
            assert torch.equal(again.to_dense(), w), (sizes, density)


@pytest.mark.parametrize("rank, shard", PIECES)
def test_the_reference(rank, shard):
    right(grid.product(*case, "eager") for case in pieces(12, rank, shard))


@pytest.mark.parametrize("rank, shard", PIECES)
def test_kernels(rank, shard):
    found = pieces(HERE[rank], rank, shard)
    right(grid.product(*case, "cpu") for case in found)
    tally.counts["products of the grid"] += len(found)


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_both_gradients(shard):
    texts = [text for text in grid.formats(2).values() if grid.is_packed(text)][shard::SHARDS]
    right(grid.gradients(text, target) for text in texts for target in ("eager", "cpu"))


@pytest.mark.long
@pytest.mark.parametrize("rank, shard", PIECES)
def test_kernels_for_a_gpu(rank, shard):
    right(assembled(*case) for case in pieces(1, rank, shard))


def assembled(text: str, expression: str, dtype) -> str | None:
    """PTX of the product, through an assembler where one is found."""
    from lacis import _core

    def run():
        sizes, generator = grid.sizes(Format.parse(text).rank)[0], torch.Generator().manual_seed(0)
        packed = pack(sparse(*(sizes[axis] for axis in expression.split(",")[0].split("->")[0]), dtype=dtype), text)
        dense = grid.expressions.dense_operands(expression, sizes, dtype, generator)
        kernel = lacis.compile(expression, packed, *dense, target="cuda:sm_90a")
        options = {"stages": True} | ({"ptxas": ptxas.find()} if ptxas.find() else {})
        assert ".visible .entry" in _core.compile(kernel.text, "cuda:sm_90a", options).stages["ptx"]

    return grid.fault(text, f"ptx {expression}", run)

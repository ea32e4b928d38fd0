# SPDX-License-Identifier: Apache-2.0
"""Long panels cut where there are few tiles of tokens: who does which part, and the sums, against float64."""

import dataclasses
import itertools

import pytest
import torch
from strategies import mostly_long

import lacis
from lacis import _core
from lacis.capture import Epilogue, capture_einsum
from lacis.emit import emit
from lacis.errors import CompileError
from lacis.patterns import functions
from lacis.patterns.hand_out import hand_out
from lacis.patterns.pieces import cut_lists
from lacis.runtime import ptxas
from lacis.runtime.kernels import compile_kernel

WORKERS, CUT = 7, 4
GIVEN = {
    "fixed": 0.6,
    "kept": 0.4,
    "adding": (4.0, 1.0, 0.08),
    "workers": WORKERS,
    "raster": 2,
    "groups": 3,
    "cut": CUT,
}
FORWARD, INPUT = "ij,bj->bi", "ij,bi->bj"


def items(lists, number, workers, columns):
    """What the list `number` of each worker says, as tuples."""
    pos = lists["pos2"].tolist()
    rows = list(zip(*(lists[f"crd{n + 2}"].tolist() for n in range(columns))))
    return rows[pos[number * workers] : pos[(number + 1) * workers]]


def drawn(panels):
    """Steps and costs of panels, some of which are empty and one of which is long."""
    steps = torch.randint(0, 20, (panels,)) * (torch.rand(panels) < 0.8)
    if panels:
        steps[panels // 2] = 200
    return steps, 0.6 + 0.3 * steps.double()


@pytest.mark.parametrize("panels", [0, 1, 5, 40])
def test_each_step_is_done_once(panels):
    torch.manual_seed(panels)
    steps, cost = drawn(panels)
    lists = cut_lists(steps, cost, **GIVEN)
    assert len(lists["pos2"]) == (2 * 3 + CUT) * WORKERS + 1
    for tiles in range(1, CUT + 1):
        found = items(lists, 2 * 3 + tiles - 1, WORKERS, 7)
        kept = {}
        for panel in range(panels):
            for tile in range(tiles):
                own = sorted(item[2:] for item in found if item[:2] == (panel, tile))
                firsts, counts, numbers, parts, slots = zip(*own)
                assert list(firsts) == [0, *itertools.accumulate(counts[:-1])] and sum(counts) == steps[panel]
                assert list(numbers) == list(range(len(own))) and set(parts) == {len(own)}
                if len(own) > 1:
                    kept[panel, tile] = list(slots)
                else:
                    assert slots == (-1,)
        slots = [slot for own in kept.values() for slot in own]
        assert len(set(slots)) == len(slots) and all(0 <= slot < 2 * WORKERS for slot in slots)
        assert all(own == list(range(own[0], own[0] + len(own))) for own in kept.values())
        assert tiles > 1 or panels < 5 or kept, "the long panel was not cut"


@pytest.mark.parametrize("panels", [1, 5, 40])
def test_the_last_worker_never_ends_later_than_without_cuts(panels):
    """And ends earlier where one panel is longer than all others, if the lists are right about what each takes."""
    torch.manual_seed(panels)
    steps, cost = drawn(panels)
    lists, ended = cut_lists(steps, cost, **GIVEN), []
    for tiles in range(1, CUT + 1):
        whole = hand_out(cost.sort(descending=True).values, workers=WORKERS, tiles=[tiles])[0, 0]
        load = torch.zeros(WORKERS).double()
        load.index_add_(0, whole.flatten().long(), cost.sort(descending=True).values.repeat_interleave(tiles))
        ended.append((max(time_of(lists, tiles, worker, steps, cost) for worker in range(WORKERS)), load.max().item()))
    assert all(cut <= whole + 1e-3 for cut, whole in ended)
    assert panels < 5 or ended[0][0] < 0.7 * ended[0][1]


def time_of(lists, tiles, worker, steps, cost):
    """What a worker's list takes, by the costs that were given."""
    first = (2 * 3 + tiles - 1) * WORKERS + worker
    begin, end = lists["pos2"][first : first + 2].tolist()
    panel, own, parts = (lists[f"crd{n}"][begin:end].long() for n in (2, 5, 7))
    part = 0.6 + (cost[panel] - 0.6) * own / steps[panel].clamp(min=1)
    return torch.where(parts > 1, part + GIVEN["kept"], cost[panel]).sum().item()


@pytest.mark.parametrize("panels", [1, 40])
def test_many_tiles_have_the_lists_that_they_had(panels):
    steps, cost = drawn(panels)
    lists = cut_lists(steps, cost, **GIVEN)
    before = lacis.patterns.balance.group_lists(cost, workers=WORKERS, raster=2, groups=3)
    for number in range(2 * 3):
        whole = [(panel, tile, 0, int(steps[panel]), 0, 1, -1) for panel, tile in items(before, number, WORKERS, 2)]
        assert items(lists, number, WORKERS, 7) == whole


def weight(block, dtype=torch.bfloat16):
    """One block row is full, one is empty, and the others have a few blocks."""
    torch.manual_seed(1)
    rows, columns = 512, 2304
    grid = torch.rand(rows // block, columns // block) < 0.1
    grid[1], grid[2] = True, False
    kept = grid.repeat_interleave(block, 0).repeat_interleave(block, 1)
    return lacis.pack(torch.randn(rows, columns) * kept, lacis.Bsr(block, block)).to(dtype)


def cut_spec(expression, packed, target, tokens=8, **options):
    """The einsum with the default steps of a GPU, those for few tokens apart, whose long rows are cut."""
    x = torch.zeros(tokens, packed.shape[expression == FORWARD], dtype=packed.dtype)
    spec = capture_einsum(expression, [packed, x], None, **options)[0]
    texts = compile_kernel(emit(spec), target).info["steps"]
    steps = [lacis.steps.parse(text) for text in texts if "upto" not in text]
    cut = [dataclasses.replace(step, cut=CUT) if step.mnemonic == "balance" else step for step in steps]
    return dataclasses.replace(spec, steps=tuple(cut))


CASES = [(64, FORWARD, "cuda:sm_90a"), (64, FORWARD, "cuda:sm_80"), (128, FORWARD, "cuda:sm_90a")]
CASES += [(16, FORWARD, "cuda:sm_90a"), (64, INPUT, "cuda:sm_90a"), (32, INPUT, "cuda:sm_80")]


@pytest.mark.parametrize("block, expression, target", mostly_long(CASES, CASES[0]))
def test_sums(block, expression, target, monkeypatch):
    """Up to the limit rows are cut; beyond it they are not."""
    monkeypatch.setattr(functions, "_workers", lambda structure: WORKERS)
    packed = weight(block)
    spec = cut_spec(expression, packed, target)
    x = torch.zeros(8, packed.shape[expression == FORWARD], dtype=packed.dtype)
    if target == "cuda:sm_80":
        monkeypatch.setenv("LACIS_DEBUG", "1")  # nothing is outside of a workspace
    kernel = lacis.compile(expression, packed, x, steps=spec.steps, target="cpu")
    matrix = packed.to_dense().double()
    for tokens in (1, 300, 256 * CUT, 256 * CUT + 1):
        x = torch.randn(tokens, x.shape[1]).bfloat16()
        want = x.double() @ (matrix.T if expression == FORWARD else matrix)
        got = kernel(packed, x)
        assert (got.double() - want).norm() <= 2.0**-8 * want.norm()
        assert torch.equal(got, kernel(packed, x))


@pytest.mark.long
@pytest.mark.parametrize("with_residual", [False, True])
def test_epilogues(with_residual, monkeypatch):
    monkeypatch.setattr(functions, "_workers", lambda structure: WORKERS)
    packed, tokens = weight(64), 300
    bias, residual = torch.randn(512).bfloat16(), torch.randn(tokens, 512).bfloat16()
    after = Epilogue(bias=bias, bias_axis="i", activation="gelu", residual=residual if with_residual else None)
    spec = cut_spec(FORWARD, packed, "cuda:sm_90a", tokens, epilogue=after)
    x = torch.randn(tokens, 2304).bfloat16()
    kernel = lacis.compile(FORWARD, packed, x, steps=spec.steps, target="cpu", epilogue=after)
    want = torch.nn.functional.gelu(x.double() @ packed.to_dense().double().T + bias.double())
    want = want + residual.double() if with_residual else want
    assert (kernel(packed, x).double() - want).norm() <= 2.0**-7 * want.norm()


@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("block, expression, target", mostly_long(CASES, CASES[0]))
def test_ptx_assembles_clean(block, expression, target):
    """Two launches behind those for few tokens, which complete the steps; no C75xx and no spill."""
    spec = cut_spec(expression, weight(block), target)
    options = {"ptxas": ptxas.find(), "check_ptxas": True, "stages": True}
    compiled = _core.compile(emit(spec), target, options)
    assert "lacis.store_acc" in compiled.stages["tiles"] and " onto " in compiled.stages["tiles"]
    info = _core.artifact_info(compiled.artifact)
    assert len(info["launches"]) == 2 + sum(text.startswith("#lacis.upto<") for text in info["steps"])


@pytest.mark.long
@pytest.mark.parametrize("block, expression", [(64, INPUT), (32, FORWARD), (128, INPUT), (64, FORWARD), (16, INPUT)])
def test_uneven_rows_in_tf32(block, expression, monkeypatch):
    """The schedule by default: where warps multiply, warps add up."""
    monkeypatch.setattr(functions, "_workers", lambda structure: WORKERS)
    packed = weight(block, torch.float32)
    x = torch.randn(300, packed.shape[expression == FORWARD])
    spec = dataclasses.replace(capture_einsum(expression, [packed, x], None)[0], tf32=True, uneven=("i", "j"))
    options = {"ptxas": ptxas.find(), "check_ptxas": True} if ptxas.find() else {}
    info = _core.artifact_info(_core.compile(emit(spec), "cuda:sm_90a", options).artifact)
    steps = [lacis.steps.parse(text) for text in info["steps"]]
    assert len(info["launches"]) > 1 and any(getattr(step, "cut", None) for step in steps)
    got = lacis.compile(expression, packed, x, steps=steps, target="cpu")(packed, x)
    matrix = packed.to_dense().double()
    want = x.double() @ (matrix.T if expression == FORWARD else matrix)
    assert (got.double() - want).norm() <= 2.0**-10 * want.norm()


@pytest.mark.long
def test_a_dense_weight_is_not_cut():
    packed = lacis.pack(torch.randn(256, 256).bfloat16(), lacis.Dense)
    why = "tiles: rows are cut of one stored operand; what is precomputed, and a dense matrix, are not"
    with pytest.raises(CompileError, match=why):
        _core.compile(emit(cut_spec(FORWARD, packed, "cuda:sm_90a")), "cuda:sm_90a", {})


@pytest.mark.long
@pytest.mark.parametrize("expression, uneven", [(FORWARD, ("i",)), (INPUT, ("j",)), (FORWARD, ("j",))])
def test_the_default_cuts_what_is_uneven(expression, uneven):
    packed = weight(64)
    x = torch.zeros(8, packed.shape[expression == FORWARD], dtype=packed.dtype)
    spec = dataclasses.replace(capture_einsum(expression, [packed, x], None)[0], uneven=uneven)
    steps = [lacis.steps.parse(text) for text in compile_kernel(emit(spec), "cuda:sm_90a").info["steps"]]
    cut = [step.cut for step in steps if step.mnemonic == "balance"]
    assert cut == [8 if uneven != ("j",) or expression == INPUT else None]

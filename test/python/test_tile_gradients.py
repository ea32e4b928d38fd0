# SPDX-License-Identifier: Apache-2.0
"""Gradients of half-type products with dense stored blocks run on tensor cores by the default schedule of sm_90a."""

import dataclasses
import types

import pytest
import torch
from strategies import mostly_long, turns
from test_tile_schedules import TARGET, problem, walk

import lacis
from lacis import _core
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.runtime import gradients, ptxas
from lacis.runtime.compile import Kernel
from lacis.runtime.kernels import Request, compile_kernel

needs_ptxas = pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")


def gradient(slot, format, rows, columns, tokens, block, dtype):
    """The weight, the tokens, what arrives for the output, and the text of one gradient's kernel."""
    packed, x, _ = problem(format, rows, columns, tokens, block, dtype)
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None)
    dy = torch.randint(-3, 4, (tokens, rows)).to(dtype)
    return packed, x, dy, emit(gradient_specs(spec)[slot])


INPUT = {
    "64": (lacis.Bsr, (64, 64), torch.bfloat16),
    "64, f16": (lacis.Bsr, (64, 64), torch.float16),
    "128": (lacis.Bsr, (128, 128), torch.bfloat16),
    "64 x 128": (lacis.Bsr, (64, 128), torch.bfloat16),
    "Bcsc": (lacis.Bcsc, (64, 64), torch.bfloat16),
    "BlockedEll": (lacis.BlockedEll, (128, 128), torch.bfloat16),
    "32": (lacis.BlockedEll, (32, 32), torch.bfloat16),
    "16, f16": (lacis.Bsr, (16, 16), torch.float16),
    "8": (lacis.Bcsc, (8, 8), torch.bfloat16),
    "32 x 16": (lacis.Bsr, (32, 16), torch.bfloat16),
}
SHAPES = [(200, 328, 300), (64, 64, 1), (128, 8, 1100)]


TURNS = [(case, shape) for n, case in enumerate(INPUT) for shape in turns(SHAPES, n)]
KEPT = [pair for pair in TURNS if pair[0] in ("128", "16, f16")]


@needs_ptxas
@pytest.mark.parametrize("case, shape", mostly_long(TURNS, *KEPT))
def test_input_assembles_clean(case, shape):
    """No C75xx and no spill."""
    format, block, dtype = INPUT[case]
    text = gradient("1", format, *shape, block, dtype)[-1]
    compiled = _core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True, "stages": True})
    assert "transposed" in compiled.stages["tiles"] and "wgmma" in compiled.stages["ptx"]


@pytest.mark.parametrize("case, shape", mostly_long(TURNS, *KEPT))
def test_the_input_arrays_say_what_the_matrix_says(case, shape):
    format, block, dtype = INPUT[case]
    packed, _, dy, text = gradient("1", format, *shape, block, dtype)
    got = walk(compile_kernel(text, TARGET), packed, dy, shape[1])
    assert torch.equal(got, dy.float() @ packed.to_dense().float())


VALUES = {
    "64": (lacis.Bsr, (64, 64), torch.bfloat16),
    "128, f16": (lacis.Bsr, (128, 128), torch.float16),
    "64 x 128": (lacis.Bsr, (64, 128), torch.bfloat16),
    "128 x 64": (lacis.Bcsc, (128, 64), torch.bfloat16),
    "Bcsc": (lacis.Bcsc, (64, 64), torch.bfloat16),
    "BlockedEll": (lacis.BlockedEll, (128, 128), torch.bfloat16),
    "32": (lacis.Bsr, (32, 32), torch.bfloat16),
    "16": (lacis.BlockedEll, (16, 16), torch.bfloat16),
    "32 x 16": (lacis.Bsr, (32, 16), torch.bfloat16),
    "64 x 16": (lacis.Bcsc, (64, 16), torch.bfloat16),
}
VALUES_TURNS = [(case, shape) for n, case in enumerate(VALUES) for shape in turns(SHAPES, n)]
VALUES_KEPT = [pair for pair in VALUES_TURNS if pair[0] in ("Bcsc",)]


@needs_ptxas
@pytest.mark.parametrize("case, shape", mostly_long(VALUES_TURNS, *VALUES_KEPT))
def test_values_assemble_clean(case, shape):
    """No C75xx and no spill."""
    format, block, dtype = VALUES[case]
    text = gradient("values", format, *shape, block, dtype)[-1]
    compiled = _core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True, "stages": True})
    assert "lacis.mma" in compiled.stages["tiles"] and "wgmma" in compiled.stages["ptx"]
    padded = format is lacis.BlockedEll  # some slots hold no block, and nobody stores there
    assert _core.artifact_info(compiled.artifact)["output"]["zero"] == padded


@needs_ptxas
@pytest.mark.parametrize("case", mostly_long(["32", "16"], "32"))
def test_few_blocks_are_gathered(case):
    compiled = _core.compile(few(case)[-1], TARGET, {"ptxas": ptxas.find(), "check_ptxas": True, "stages": True})
    assert "lacis.mma_gathered" in compiled.stages["tiles"] and "wgmma" in compiled.stages["ptx"]


def few(case):
    """The gradient of the values as it is where half of the blocks are stored, or fewer."""
    packed, x, dy, _ = gradient("values", VALUES[case][0], 1096, 1304, 64, VALUES[case][1], torch.bfloat16)
    spec = dataclasses.replace(capture_einsum("ij,bj->bi", [packed, x], None)[0], eighths=1)
    return packed, x, dy, emit(gradient_specs(spec)["values"])


@pytest.mark.parametrize("case", mostly_long(["32", "16"], "32"))
def test_the_gathered_arrays_say_what_the_matrix_says(case):
    packed, x, dy, text = few(case)
    got = walk_shares(compile_kernel(text, TARGET), packed, x, dy)
    assert torch.equal(got, packed.pattern.gather(dy.float().T @ x.float()))


def test_each_pattern_has_the_gradients_for_its_density(monkeypatch):
    """Patterns share a forward kernel, but not the gradients of one that has other kernels for them."""
    monkeypatch.setattr(gradients, "_families", {})
    packed, x, _ = problem(lacis.Bsr, 1096, 1304, 64, (16, 16))
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None)
    names = []

    def family(eighths):
        own = dataclasses.replace(spec, eighths=eighths)
        loaded = types.SimpleNamespace(key=Request(emit(own), TARGET).key, target="cpu", name_also=names.append)
        return gradients.family(Kernel(own, loaded, torch.device("cpu")), None)

    most, half, few = map(family, (5, 4, 1))
    assert most.key == most.kernel.key == half.kernel.key != half.key and half is few
    assert names == [half.key] and gradients.find_family(half.key) is half
    told = ["lacis.eighths = 4" in emit(each.specs["values"]) for each in (most, half)]
    assert told == [False, True] and emit(most.specs["1"]) == emit(half.specs["1"])


def walk_shares(kernel, packed, x, dy):
    """The loops of a sampled tile kernel over the arrays that its artifact names, in Python."""
    schedule = next(d.step for d in kernel.derived if d.step.function.endswith("schedule"))
    lists = {d.name: packed.array("", d.step, d.name) for d in kernel.derived if d.step == schedule}
    layout, given = packed.pattern.layout(schedule.source), schedule.given
    arrays, (down, across) = layout.arrays, layout.format.tile
    share, (bits, beside) = given["length"], layout.format.levels[2].digits
    step, height, width = layout.format.levels[1].digits[0].div, bits.mod, beside.mod
    dense = torch.zeros(dy.shape[1] + 1024, x.shape[1] + 1024)
    dense[: dy.shape[1], : x.shape[1]] = dy.float().T @ x.float()
    found = torch.zeros(packed.values.shape)
    done = torch.zeros(len(packed.values), dtype=torch.int)
    is_cut = "split" in given  # whole shares come first
    level, pos = 1 + is_cut, lists[f"pos{1 + is_cut}"]
    for item in range(pos[len(pos) // 2 if is_cut else -1]):
        panel, first, count = int(lists[f"crd{level}"][item]), int(lists[f"crd{level + 1}"][item]) * share, share
        if "span" in given:  # lists say where, and how many
            first, count = int(lists[f"crd{level + 1}"][item]), int(lists[f"crd{level + 2}"][item])
            columns = arrays["crd1"][arrays["pos1"][panel] + first :][:count].long() * step
            assert count <= share and columns.max() + step - columns[0] // 64 * 64 <= 640
            assert (arrays["pos2"].diff() * down <= 64).all()
        steps = list(range(arrays["pos1"][panel], arrays["pos1"][panel + 1]))[first : first + count]
        assert steps
        for stage in steps:
            present = [bit for bit in range(height * width) if arrays["bits2"][stage] >> bit & 1]
            for position, bit in zip(range(arrays["pos2"][stage], arrays["pos2"][stage + 1]), present, strict=True):
                row = int(arrays["origin"][panel * height + bit // width]) * down
                column = int(arrays["crd1"][stage]) * step + bit % width * across
                slot = int(arrays["link3"][position])
                found[slot] = dense[row : row + down, column : column + across]
                done[slot] += 1
    assert (done <= 1).all()
    valid = packed.pattern.tensors["valid"]
    return torch.where(valid, found, 0) if valid.numel() else found


@pytest.mark.parametrize("case, shape", mostly_long(VALUES_TURNS, *VALUES_KEPT))
def test_the_values_arrays_say_what_the_matrix_says(case, shape):
    format, block, dtype = VALUES[case]
    packed, x, dy, text = gradient("values", format, *shape, block, dtype)
    got = walk_shares(compile_kernel(text, TARGET), packed, x, dy)
    assert torch.equal(got, packed.pattern.gather(dy.float().T @ x.float()))


@pytest.mark.long
def test_steps_given_back_make_the_same_code():
    packed, x, _, text = gradient("values", lacis.Bcsc, *dict(VALUES_KEPT)["Bcsc"], (64, 64), torch.bfloat16)
    kernel = compile_kernel(text, TARGET)
    steps = [lacis.steps.parse(step) for step in kernel.info["steps"]]
    assert {"regroup", "balance", "bind", "stage", "pipeline", "tensorize"} <= {step.mnemonic for step in steps}
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None)
    again = lambda chosen: emit(dataclasses.replace(gradient_specs(spec)["values"], steps=tuple(chosen)))
    assert compile_kernel(again(steps), TARGET).code == kernel.code
    for verb in ("pipeline", "regroup", "stage", "balance", "bind", "jam"):
        found = compile_kernel(again(step for step in steps if step.mnemonic != verb), TARGET)
        assert found.code == kernel.code, f"the default completes {verb}"


@pytest.mark.long
def test_gathered_steps_have_64_rows_of_one_column():
    packed, x, _, text = few("32")
    steps = [lacis.steps.parse(step) for step in compile_kernel(text, TARGET).info["steps"]]
    spec = dataclasses.replace(capture_einsum("ij,bj->bi", [packed, x], None)[0], eighths=1)
    sizes = (
        "tiles: steps are gathered that have 64 rows of blocks of one column; the rows of a panel and the columns of a "
        "share are a multiple of 64"
    )
    shares = "tiles: the blocks of a share are so many steps for each consumer; 2 blocks are a step"
    for verb, change, what in (
        ("regroup", lambda step: dataclasses.replace(step, capacity=3), sizes),
        ("balance", lambda step: dataclasses.replace(step, within=100), sizes),
        ("split", lambda step: dataclasses.replace(step, factor=7), shares),
    ):
        is_own = lambda step: step.mnemonic == verb and getattr(step, "loop", "") != "b"
        changed = [change(step) if is_own(step) else step for step in steps]
        with pytest.raises(lacis.CompileError, match=what):
            compile_kernel(emit(dataclasses.replace(gradient_specs(spec)["values"], steps=tuple(changed))), TARGET)

# SPDX-License-Identifier: Apache-2.0
"""The default schedule of sm_90a: half-type products with dense stored blocks run on tensor cores."""

import pytest
import torch
from strategies import mostly_long, turns

import lacis
from lacis import _core
from lacis.capture import Epilogue, capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.nn import weight_module
from lacis.patterns.regroup import regroup
from lacis.runtime import ptxas
from lacis.runtime.kernels import compile_kernel

TARGET = "cuda:sm_90a"


def problem(format, rows, columns, tokens, block, dtype=torch.bfloat16, **options):
    """A weight of small whole numbers, tokens, and the kernel's text: sums are exact in any order."""
    torch.manual_seed(0)
    grid = torch.rand(-(-rows // block[0]), -(-columns // block[1])) < 0.4
    mask = grid.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
    packed = lacis.pack(torch.randint(-3, 4, (rows, columns)) * mask.float(), format(*block)).to(dtype)
    x = torch.randint(-3, 4, (tokens, columns)).to(dtype)
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None, **options)
    return packed, x, emit(spec)


TAKEN = {
    "64": (lacis.Bsr, (64, 64), torch.bfloat16),
    "64, f16": (lacis.Bsr, (64, 64), torch.float16),
    "128": (lacis.Bsr, (128, 128), torch.bfloat16),
    "128 x 64": (lacis.Bsr, (128, 64), torch.bfloat16),
    "Bcsc": (lacis.Bcsc, (64, 64), torch.bfloat16),
    "BlockedEll": (lacis.BlockedEll, (128, 128), torch.bfloat16),
    "32": (lacis.Bsr, (32, 32), torch.bfloat16),
    "16, f16": (lacis.Bsr, (16, 16), torch.float16),
    "8": (lacis.Bcsc, (8, 8), torch.bfloat16),
    "32 x 16": (lacis.Bsr, (32, 16), torch.bfloat16),
    "16 x 128": (lacis.Bsr, (16, 128), torch.bfloat16),
}

SHAPES = [(200, 328, 300), (64, 64, 1), (128, 8, 1100)]
HERE = ("64, f16", "Bcsc")
TURNS = mostly_long(
    [(case, shape) for n, case in enumerate(TAKEN) for shape in turns(SHAPES, n)],
    *((case, SHAPES[n % 3]) for n, case in enumerate(TAKEN) if case in HERE),
)


@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("case, shape", TURNS)
def test_ptx_assembles_clean(case, shape):
    """No C75xx and no spill."""
    format, block, dtype = TAKEN[case]
    _, _, text = problem(format, *shape, block, dtype)
    options = {"ptxas": ptxas.find(), "check_ptxas": True, "stages": True}
    compiled = _core.compile(text, TARGET, options)
    assert "lacis.mma" in compiled.stages["tiles"] and "wgmma" in compiled.stages["ptx"]


@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize(
    "block, activation, adds",
    mostly_long(
        [(64, "relu", 0), (64, "gelu", 0), (128, "silu", 1), (32, None, 1), (16, "silu", 0), (16, "gelu", 1)],
        *[(128, "silu", 1), (16, "gelu", 1)],
    ),
)
def test_bias_activation_and_residual_are_part_of_the_kernel(block, activation, adds):
    bias, residual = torch.zeros(256, dtype=torch.bfloat16), torch.zeros(64, 256, dtype=torch.bfloat16)
    after = Epilogue(bias=bias, activation=activation, residual=residual if adds else None)
    _, _, text = problem(lacis.Bsr, 256, 384, 64, (block, block), epilogue=after)
    compiled = _core.compile(text, TARGET, {"ptxas": ptxas.find(), "check_ptxas": True, "stages": True})
    assert "lacis.load_rows" in compiled.stages["tiles"] and ("lacis.read_tile" in compiled.stages["tiles"]) == adds
    launches = _core.artifact_info(compiled.artifact)["launches"]
    factors = [part for launch in launches for part in launch["grid"][0]["product"] if isinstance(part, dict)]
    conditions = [part["within"][1:] for part in factors if "within" in part]
    assert sorted(conditions) == [[-1, 32], [32, -1]], "one for up to 32 tokens"


@pytest.mark.parametrize("block", mostly_long([16, 32, 64], 16))
def test_a_scale_that_is_a_tensor_is_the_same_for_the_whole_tile(block):
    after = Epilogue(scale=torch.ones((), dtype=torch.bfloat16))
    _, _, text = problem(lacis.Bsr, 256, 384, 8, (block, block), epilogue=after)
    compiled = _core.compile(text, TARGET, {"stages": True})
    assert "mma.sync.aligned.m16n8k16" in compiled.stages["ptx"], "few tokens are multiplied by warps"


def blocks_that_occur_twice(height, width):
    levels = (
        f"i floordiv {height} : dense, j floordiv {width} : compressed, i mod {height} : dense, j mod {width} : dense"
    )
    return lacis.Format.parse(f"#lacis.format<(i, j) -> ({levels}), multiset>")


REFUSED = {
    "blocks that occur twice": problem(blocks_that_occur_twice, 128, 128, 8, (64, 64)),
    "float32": problem(lacis.Bsr, 128, 128, 8, (64, 64), torch.float32),
    "CSR": problem(lambda *block: lacis.Csr, 128, 128, 8, (64, 64)),
    "blocks that do not nest": problem(lacis.Bsr, 144, 144, 8, (48, 48)),
    "rows of no multiple of 16 bytes": problem(lacis.Bsr, 128, 100, 8, (64, 64)),
    "features of no multiple of 16 bytes": problem(lacis.Bsr, 100, 128, 8, (64, 64)),
    "another semiring": problem(lacis.Bsr, 128, 128, 8, (64, 64), semiring="max_plus"),
}


@pytest.mark.parametrize("case", mostly_long(REFUSED, "float32", "a residual"))
def test_what_tiles_cannot_take_runs_in_plain_loops(case):
    compiled = _core.compile(REFUSED[case][2], TARGET, {"stages": True, "to": "ptx"})
    assert "lacis.mma" not in compiled.stages["tiles"] and "wgmma" not in compiled.stages["ptx"]


def test_steps_given_back_make_the_same_code():
    packed, x, text = problem(lacis.Bsr, 256, 384, 64, (64, 64))
    kernel = compile_kernel(text, TARGET)
    steps = [lacis.steps.parse(step) for step in kernel.info["steps"]]
    assert {"regroup", "balance", "bind", "stage", "pipeline", "tensorize"} <= {step.mnemonic for step in steps}
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None, steps)
    assert compile_kernel(emit(spec), TARGET).code == kernel.code


@pytest.mark.long
def test_a_missing_mark_is_completed_or_named():
    """By the rule of tensor cores; sm_75 has none, and takes a schedule of tiles as it is."""
    packed, x, text = problem(lacis.Bsr, 256, 384, 64, (64, 64))
    kernel = compile_kernel(text, TARGET)
    steps = [lacis.steps.parse(step) for step in kernel.info["steps"]]
    for verb, what in (
        ("pipeline", "pipeline it"),
        ("regroup", "regroup it"),
        ("stage", "is not staged"),
        ("balance", "balance the second"),
        ("bind", "no loop is bound to 'warpgroup'"),
    ):
        spec, _ = capture_einsum("ij,bj->bi", [packed, x], None, [s for s in steps if s.mnemonic != verb])
        assert compile_kernel(emit(spec), TARGET).info["steps"] == kernel.info["steps"]
        with pytest.raises(lacis.CompileError, match=what):
            compile_kernel(emit(spec), "cuda:sm_75")


def walk(kernel, packed, x, rows):
    """The loops of a tile kernel over the arrays that its artifact names, in Python."""
    schedule = next(d.step for d in kernel.derived if d.step.function.endswith("schedule"))
    lists = {d.name: packed.array("", d.step, d.name) for d in kernel.derived if d.step == schedule}
    layout, given = packed.pattern.layout(schedule.source), schedule.given
    arrays, tiles = layout.arrays, layout.values(packed.values)
    by, raster, groups = given["columns"], given["swizzle_group"], given["period"]
    bits = layout.format.levels[2].digits
    height, width = bits[0].mod, bits[1].mod if len(bits) == 2 else 1
    step, (down, across) = layout.format.levels[1].digits[0].div, layout.format.tile
    if layout.format.levels[0].digits[0].axis == 1:  # panels of columns: the product takes the tiles transposed
        tiles, down, across = tiles.mT, across, down
    y, count = torch.full((len(x), rows), float("nan")), -(-len(x) // by)
    workers = (len(lists["pos2"]) - 1) // (raster * groups)
    for group, worker in ((g, n) for g in range(-(-count // raster)) for n in range(workers)):
        own = (group % groups * raster + min(count - group * raster, raster) - 1) * workers + worker
        for item in range(lists["pos2"][own], lists["pos2"][own + 1]):
            panel, begin = lists["crd2"][item], (group * raster + int(lists["crd3"][item])) * by
            part = torch.zeros(by, x.shape[1] + 128)
            part[: len(x[begin : begin + by]), : x.shape[1]] = x[begin : begin + by]
            total = torch.zeros(height * down, by)
            for stage in range(arrays["pos1"][panel], arrays["pos1"][panel + 1]):
                present = [bit for bit in range(height * width) if arrays["bits2"][stage] >> bit & 1]
                for position, bit in zip(range(arrays["pos2"][stage], arrays["pos2"][stage + 1]), present, strict=True):
                    column = int(arrays["crd1"][stage]) * step + bit % width * across
                    row = bit // width * down
                    total[row : row + down] += tiles[position].float() @ part[:, column : column + across].T
            for place in range(height):
                row = int(arrays["origin"][panel * height + place]) * down
                found = y[begin : begin + by, row : row + down]
                found.copy_(total[place * down :].T[: found.shape[0], : found.shape[1]])
    return y


@pytest.mark.parametrize("case, shape", TURNS)
def test_the_arrays_say_what_the_matrix_says(case, shape):
    format, block, dtype = TAKEN[case]
    packed, x, text = problem(format, *shape, block, dtype)
    got = walk(compile_kernel(text, TARGET), packed, x, shape[0])
    assert torch.equal(got, x.float() @ packed.to_dense().float().T)


@pytest.mark.parametrize("slot", mostly_long(["", "1"], ""))
def test_a_dense_matrix_is_read_where_it_lies(slot):
    """Its layout has the steps of one in which every block is stored, and needs no copy and no links."""
    w, x = torch.randint(-3, 4, (328, 200)).bfloat16(), torch.zeros(300, 200).bfloat16()
    packed = lacis.pack(w, lacis.Dense, mask=torch.ones(w.shape, dtype=torch.bool))
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None)
    kernel = compile_kernel(emit(gradient_specs(spec)[slot] if slot else spec), TARGET)
    step = next(derived.step for derived in kernel.derived if derived.step.function == "layout")
    arrays = packed.pattern.layout(step).arrays
    blocks = lacis.pack(w, lacis.Bsr(64, 64), mask=torch.ones(w.shape, dtype=torch.bool))
    wanted = regroup(blocks.pattern.parts[""], step.given["format"]).arrays
    assert all(torch.equal(array, wanted[name]) for name, array in arrays.items()) and "link3" not in arrays
    assert not {"link3", "values"} & {derived.name for derived in kernel.derived}
    if ptxas.find():
        _core.compile(emit(spec), TARGET, {"ptxas": ptxas.find(), "check_ptxas": True})


def test_copies_follow_the_values():
    packed, _, text = problem(lacis.Bsr, 256, 256, 8, (16, 16))
    name = next(("", d.step, "values") for d in compile_kernel(text, TARGET).derived if d.name == "values")
    first = packed.array(*name)
    assert packed.array(*name) is first
    packed.values.mul_(2)
    assert torch.equal(packed.array(*name), 2 * first)
    weight = weight_module(packed)
    (place,) = weight.bind([name])
    with torch.no_grad():
        held = weight.tensor(place[1])
        weight.values.mul_(2)
        assert weight.tensor(place[1]) is held and torch.equal(held, 4 * first)  # where a recorded graph reads it
        weight.half().tensor(place[1])
        assert torch.equal(weight.tensor(place[1]), 4 * first.half())
        weight.set_packed(problem(lacis.Bsr, 256, 256, 8, (16, 16), torch.float16)[0])
        assert torch.equal(weight.tensor(place[1]), first.half())
    weight.values.data.mul_(3)  # which torch does not count
    assert torch.equal(weight.tensor(place[1]), 3 * first.half())  # but a call with gradients makes its own copy
    made = torch.compile(lambda: weight.tensor(place[1]), fullgraph=True, backend="aot_eager")()
    assert torch.equal(made, 3 * first.half())
    weight.validate()
    assert not any("derived" in name for name in weight.state_dict())


def test_copies_are_in_the_dtype_of_an_autocast_region():
    packed, _, text = problem(lacis.Bsr, 256, 256, 8, (16, 16))
    name = next(("", d.step, "values") for d in compile_kernel(text, TARGET).derived if d.name == "values")
    weight = weight_module(packed.to(torch.float32))
    (place,) = weight.bind([name], torch.bfloat16)
    with torch.no_grad():
        assert torch.equal(weight.tensor(place[1]), packed.array(*name))
        weight.values.mul_(2)
        assert torch.equal(weight.tensor(place[1]), 2 * packed.array(*name))
        other = problem(lacis.Bsr, 256, 256, 8, (16, 16))[0]
        weight.set_packed(other.to(torch.float32))
        assert torch.equal(weight.tensor(place[1]), other.array(*name))
    weight.validate()
    assert not any("derived" in name for name in weight.state_dict())


def test_a_transposed_operand_has_its_rows_in_the_other_axis():
    _, x, _ = problem(lacis.Bsr, 256, 384, 40, (64, 64))
    for block in ((64, 64), (16, 16)):
        turned = problem(lacis.Bsr, 256, 384, 40, block)[0].transpose()
        text = emit(capture_einsum("ji,bj->bi", [turned, x], None)[0])
        got = walk(compile_kernel(text, TARGET), turned, x, 256)
        assert torch.equal(got, x.float() @ turned.to_dense().float())


def test_links_lead_to_the_parts_of_a_block():
    packed, _, text = problem(lacis.Bsr, 256, 256, 8, (128, 128))
    kernel = compile_kernel(text, TARGET)
    layout = packed.pattern.layout(next(d.step for d in kernel.derived if d.name == "link3"))
    for link, tile in zip(layout.arrays["link3"].tolist(), layout.values(packed.values)):
        slot, part = divmod(link, 4)
        row, column = part // 2 * 64, part % 2 * 64
        assert torch.equal(packed.values[slot, row : row + 64, column : column + 64], tile)

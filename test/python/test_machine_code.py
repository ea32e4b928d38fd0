# SPDX-License-Identifier: Apache-2.0
"""Consumers read registers that a stage was loaded into before they give the stage back: what the assembler made of it.

Nothing else makes a load complete before an arrive, and a producer may fill the stage while the load is under way.
"""

import dataclasses
import pathlib

import machine_code
import pytest
import torch
from strategies import mostly_long
from test_tile_gradients import few, gradient
from test_tile_schedules import problem

import lacis
from lacis import _core
from lacis.capture import Epilogue, capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.runtime import ptxas

found = ptxas.find() and machine_code.disassembler()
needs_tools = pytest.mark.skipif(not found, reason="needs ptxas and nvdisasm")
SHAPE = (200, 324, 300)
HALF = torch.bfloat16


def with_residual(block, activation="silu", **options) -> str:
    bias, residual = torch.zeros(256, dtype=HALF), torch.zeros(64, 256, dtype=HALF)
    after = Epilogue(bias=bias, activation=activation, residual=residual)
    return problem(lacis.Bsr, 256, 384, 64, (block, block), epilogue=after, **options)[-1]


def in_tf32(block, slot) -> str:
    packed, x, _ = problem(lacis.Bsr, *SHAPE, (block, block), torch.float32)
    spec = dataclasses.replace(capture_einsum("ij,bj->bi", [packed, x], None)[0], tf32=True)
    return emit({"": spec, **gradient_specs(spec)}[slot])


def plain(block, slot) -> str:
    known = (lacis.Bsr, 200, 328, 300, (block, block), HALF)
    return gradient(slot, *known)[-1] if slot else problem(*known)[-1]


def by_hand(file) -> str:
    return (pathlib.Path(__file__).parents[1] / "Tiles" / f"{file}.mlir").read_text()


HAND = [
    f"grad-{form}" for form in ("query64", "query128", "query64-skew", "query128-skew", "key-value64", "key-value128")
]
FAMILIES = {f"gathered {block}": (lambda block: few(block)[-1], block) for block in ("16", "32")}
FAMILIES |= {f"residual {block}": (with_residual, block) for block in (128, 64)}
FAMILIES |= {f"float32, residual {n}": (lambda n: with_residual(n, out_dtype=torch.float32), n) for n in (128, 64, 16)}
FAMILIES |= {f"tf32 {slot} {n}": (in_tf32, n, slot) for n in (128, 64, 32, 16) for slot in ("", "1", "values")}
FAMILIES |= {f"by hand: {file}": (by_hand, file) for file in HAND}
BY_WARPS = {f"{slot} {n}": (plain, n, slot) for n in (128, 64, 32, 16) for slot in ("", "1", "values")}
TURNS = [(name, target) for name in FAMILIES for target in ("cuda:sm_90a", "cuda:sm_80")]
HOPPERS = ("gathered", "by hand", "float32, residual 16")
TURNS = [turn for turn in TURNS if not turn[0].startswith(HOPPERS) or turn[1] == "cuda:sm_90a"]
TURNS += [(name, "cuda:sm_80") for name in BY_WARPS]
BY_WARPGROUPS = ("tf32  128", "tf32  64")  # from shared memory, on sm_90a
HERE = [("gathered 32", "cuda:sm_90a"), ("residual 128", "cuda:sm_90a"), ("tf32 values 64", "cuda:sm_90a")]
HERE += [(f"by hand: {file}", "cuda:sm_90a") for file in ("grad-query64", "grad-key-value128")]


@needs_tools
@pytest.mark.parametrize("name, target", mostly_long(TURNS, *HERE))
def test_no_arrive_passes_a_load(name, target):
    make, *arguments = (FAMILIES | BY_WARPS)[name]
    compiled = _core.compile(make(*arguments), target, {"stages": True})
    text = machine_code.disassemble(compiled.stages["ptx"])
    if not (name in BY_WARPGROUPS and target == "cuda:sm_90a"):
        assert ("LDSM" in text or "LDS R" in text) and ("SYNCS.ARRIVE" in text or "ATOMS.ARRIVE" in text)
    assert machine_code.passed_loads(text) == []


def code(*lines: str) -> str:
    """The lines as a disassembler prints them."""
    numbered = [line if line.endswith(":") else f"        /*{16 * n:04x}*/    {line} ;" for n, line in enumerate(lines)]
    return "\n".join([".section\t.text.kernel", *numbered])


LOAD, USE = "LDSM.16.M88.4 R4, [R2]", "HMMA.16816.F32.BF16 R8, R4, R20, R8"
ARRIVE, AGAIN = "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ", "@P0 BRA `(.L_x_1)"


def test_what_is_said_to_pass():
    said = [f"{LOAD} -> {ARRIVE}"]
    assert machine_code.passed_loads(code(LOAD, USE, ARRIVE, "EXIT")) == []
    assert machine_code.passed_loads(code(LOAD, ARRIVE, USE, "EXIT")) == said
    assert machine_code.passed_loads(code(LOAD, ARRIVE, "EXIT")) == [], "what nobody reads may be wrong"
    assert machine_code.passed_loads(code(".L_x_1:", USE, LOAD, ARRIVE, AGAIN, "EXIT")) == said, "in the next round"
    assert machine_code.passed_loads(code(LOAD, "@P0 BRA `(.L_x_1)", USE, ".L_x_1:", ARRIVE, USE, "EXIT")) == said

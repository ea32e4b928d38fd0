# SPDX-License-Identifier: Apache-2.0
"""Some steps of a schedule are completed by the rest of a default: the same list, or a remark that says why not."""

from __future__ import annotations

import dataclasses
import functools
import random
import re
import subprocess

import lacis_tools
import pytest
import tally
import torch
from strategies import LONG
from test_tile_schedules import problem

import lacis
from lacis import steps
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.schedule.steps.parse import _Reader

DRAWN = 40 if LONG else 8
HOPPER, AMPERE, CPU = "target=cuda arch=sm_90a", "target=cuda arch=sm_80", "target=cpu"


def product(block, slot=None, format=lacis.Bsr, dtype=torch.bfloat16):
    packed, x, _ = problem(format, 256, 384, 64, block, dtype)
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None)
    return gradient_specs(spec)[slot] if slot else spec


CASES = {
    "blocks": (HOPPER, functools.partial(product, (64, 64))),
    "slabs": (HOPPER, functools.partial(product, (16, 16))),
    "input": (HOPPER, functools.partial(product, (64, 64), "1")),
    "values": (HOPPER, functools.partial(product, (64, 64), "values")),
    "gathered values": (HOPPER, functools.partial(product, (16, 16), "values")),
    "warps": (AMPERE, functools.partial(product, (32, 32))),
    "values by warps": (AMPERE, functools.partial(product, (64, 64), "values")),
    "entries": (HOPPER, functools.partial(product, (1, 1), format=lambda *block: lacis.Csr(), dtype=torch.float32)),
    "entries on a CPU": (CPU, functools.partial(product, (1, 1), format=lambda *block: lacis.Csr())),
}


def completed(target, spec, schedules):
    """The steps in force and the remarks for each schedule, all in one run of the tool."""
    texts = [emit(dataclasses.replace(spec, steps=tuple(given))) for given in schedules]
    command = [str(lacis_tools.find("lacis-opt")), "-", f"--lacis-to-loops={target}", "-split-input-file"]
    done = subprocess.run(command, input="\n// -----\n".join(texts), capture_output=True, text=True, check=True)
    found = []
    for text in done.stdout.split("// -----"):
        reader = _Reader(text)
        reader.at = text.index("lacis.steps = ") + len("lacis.steps = ")
        said = re.search(r"lacis\.remarks = \[(.*?)\], lacis\.", text)
        found.append((reader.items("[", "]", reader.step), said.group(1) if said else ""))
    return found


@pytest.mark.parametrize("case", CASES)
def test_what_was_left_out_comes_back(case):
    target, make = CASES[case]
    spec = make()
    ((whole, said),) = completed(target, spec, [()])
    draw = random.Random(f"{tally.SEED} {case}")
    kept = [draw.uniform(0, 1) for _ in range(DRAWN)]
    drawn = [[step for step in whole if draw.random() < share] for share in kept]
    same = 0
    for given, (found, remarks) in zip(drawn, completed(target, spec, drawn), strict=True):
        assert found == whole or len(remarks) > len(said), given
        same += found == whole
        tally.counts["partial schedules"] += 1
    assert same == DRAWN, "every step of a default is one of its rule's"


FILLED = {
    "stages": ("blocks", [steps.Pipeline("j0", 3)]),
    "columns": ("blocks", [steps.Split("b", 128)]),
    "columns of slabs": ("slabs", [steps.Split("b", 64)]),
    "tiles of a stage": ("slabs", [steps.Pipeline("j0", 2)]),
    "groups": ("blocks", [steps.Balance("b0", 2, 8)]),
    "few": ("slabs", [steps.Unroll("upto32.j00", 2)]),
    "columns and stages": ("warps", [steps.Split("b", 64), steps.Pipeline("j0", 2)]),
    "stages of values": ("values", [steps.Pipeline("b0", 2)]),
    "stages of values by warps": ("values by warps", [steps.Pipeline("b0", 2)]),
    "rounds": ("entries", [steps.Unroll("j", 3)]),
    "rounds on a CPU": ("entries on a CPU", [steps.Unroll("j", 2)]),
    "an order": ("blocks", [steps.Reorder("b0", "i01", "b1")]),
}


@pytest.mark.parametrize("case", FILLED)
def test_a_step_fills_a_hole(case):
    """The verbs are those of the default, and the user's step is in force."""
    name, given = FILLED[case]
    target, make = CASES[name]
    spec = make()
    (whole, said), (found, remarks) = completed(target, spec, [(), given])
    assert [step.mnemonic for step in found] == [step.mnemonic for step in whole] and remarks == said
    assert all(step in found or step.mnemonic in ("reorder", "balance") for step in given)


def test_stages_follow_from_columns():
    """Half of the columns leave room for more stages, and twice as many tiles make a group."""
    target, make = CASES["blocks"]
    ((found, _),) = completed(target, make(), [[steps.Split("b", 128)]])
    assert steps.Pipeline("j0", 6) in found and steps.Balance("b0", 8, 16) in found


CONTRADICTIONS = {
    "columns": ("blocks", steps.Split("b", 72), "tiles have a multiple of 16 columns, up to 256"),
    "columns of warps": ("warps", steps.Split("b", 96), "tiles have a multiple of 64 columns, up to 192"),
    "stages": ("blocks", steps.Pipeline("j0", 5), "shared memory has room for 4 stages"),
    "stages of values": ("values", steps.Pipeline("b0", 9), "shared memory has room for 3 stages"),
    "rows": ("blocks", steps.Split("i0", 3), "the rule takes #lacis.split"),
    "a loop": ("blocks", steps.Unroll("i1"), "the rule has a use for loop 'i1'"),
    "no loop": ("blocks", steps.Split("b01", 2), "under the rule there is no loop 'b01'"),
    "a copy": ("blocks", steps.Relayout("1"), "the rule takes no such step"),
    "a unit": ("blocks", steps.Bind("b", "block.x"), "under the rule there is no loop 'b'"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_contradiction_is_named(case):
    name, given, why = CONTRADICTIONS[case]
    target, make = CASES[name]
    if not hasattr(given, "operand") and given.loop not in ("b", "i0", "i1", "j0"):
        with pytest.raises(subprocess.CalledProcessError) as refused:
            completed(target, make(), [[given]])
        assert f"{given.mnemonic}: no loop named '{given.loop}'" in refused.value.stderr
        assert f"no rule made its loops: tensorize: {given.text()}: {why}" in refused.value.stderr
        return
    ((found, remarks),) = completed(target, make(), [[given]])
    assert f"tensorize: {given.text()}: {why}".replace('"', r"\22") in remarks and given in found


def test_numbers_of_a_completed_schedule():
    """Tiles of 48 columns and two stages, in plain loops on a CPU; 200 rows and 300 tokens divide nothing."""
    packed, x, _ = problem(lacis.Bsr, 200, 328, 300, (64, 64))
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None)
    ((found, _),) = completed(HOPPER, spec, [[steps.Split("b", 48), steps.Pipeline("j0", 2)]])
    plain = [step for step in found if "upto" not in step.text()]
    kernel = lacis.compile("ij,bj->bi", packed, x, steps=plain, target="cpu")
    assert "lacis.mma" in kernel.asm["tiles"]
    for tokens in (x, x[:1], x[:0]):
        want = tokens.double() @ packed.to_dense().double().T
        torch.testing.assert_close(kernel(packed, tokens), want.bfloat16())

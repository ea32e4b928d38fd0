# SPDX-License-Identifier: Apache-2.0
"""The default schedules of sm_80, sm_86 and sm_89: the same tiles by asynchronous copies and mma.sync."""

import pytest
import torch
from strategies import mostly_long
from test_tile_gradients import gradient, walk_shares
from test_tile_schedules import problem, walk

import lacis
from lacis import _core
from lacis.capture import Epilogue
from lacis.runtime import ptxas
from lacis.runtime.kernels import compile_kernel

needs_ptxas = pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
BLOCKS = {
    "64": (lacis.Bsr, (64, 64), torch.bfloat16),
    "128, f16": (lacis.Bsr, (128, 128), torch.float16),
    "128 x 64": (lacis.Bcsc, (128, 64), torch.bfloat16),
    "BlockedEll, 32": (lacis.BlockedEll, (32, 32), torch.bfloat16),
    "16": (lacis.Bsr, (16, 16), torch.bfloat16),
    "8": (lacis.Bcsc, (8, 8), torch.bfloat16),
    "16 x 128": (lacis.Bsr, (16, 128), torch.bfloat16),
}
SHAPE = (200, 328, 300)
TURNS = [(case, target) for case in BLOCKS for target in ("cuda:sm_80", "cuda:sm_86", "cuda:sm_89")]
SAMPLED = [turn for turn in TURNS if turn[0] != "8"]
KEPT = [("BlockedEll, 32", "cuda:sm_80"), ("128, f16", "cuda:sm_89")]


def assemble(text, target):
    """Compiles and assembles, clean of spills."""
    options = {"ptxas": ptxas.find(), "check_ptxas": True, "stages": True}
    compiled = _core.compile(text, target, options)
    assert "lacis.mma" in compiled.stages["tiles"] and "cp.async.cg.shared.global" in compiled.stages["ptx"]
    launch = _core.artifact_info(compiled.artifact)["launches"][-1]
    assert launch["shared"] <= (166912 if target == "cuda:sm_80" else 101376)


@needs_ptxas
@pytest.mark.parametrize("case, target", mostly_long(TURNS, *KEPT))
def test_forward_assembles_clean(case, target):
    format, block, dtype = BLOCKS[case]
    assemble(problem(format, *SHAPE, block, dtype)[-1], target)


@needs_ptxas
@pytest.mark.parametrize("case, target", mostly_long(TURNS, *KEPT[:1]))
def test_gradient_of_the_input_assembles_clean(case, target):
    format, block, dtype = BLOCKS[case]
    assemble(gradient("1", format, *SHAPE, block, dtype)[-1], target)


@needs_ptxas
@pytest.mark.parametrize("case, target", mostly_long(SAMPLED))
def test_gradient_of_the_values_assembles_clean(case, target):
    format, block, dtype = BLOCKS[case]
    assemble(gradient("values", format, *SHAPE, block, dtype)[-1], target)


EPILOGUES = [(block, what) for block in (64, 32, 16) for what in ("relu", "gelu", "silu", "residual")]


@needs_ptxas
@pytest.mark.parametrize("block, what", mostly_long(EPILOGUES[:-5] + EPILOGUES[-4:-1], (64, "residual")))
def test_bias_and_activation_are_part_of_the_kernel(block, what):
    residual = torch.zeros(300, 200, dtype=torch.bfloat16) if what == "residual" else None
    after = Epilogue(
        bias=torch.zeros(200, dtype=torch.bfloat16),
        activation=None if what == "residual" else what,
        residual=residual,
    )
    assemble(problem(lacis.Bsr, *SHAPE, (block, block), epilogue=after)[-1], "cuda:sm_80")


@pytest.mark.parametrize("case, target", mostly_long(TURNS, *KEPT))
def test_the_arrays_say_what_the_matrix_says(case, target):
    format, block, dtype = BLOCKS[case]
    packed, x, text = problem(format, *SHAPE, block, dtype)
    got = walk(compile_kernel(text, target), packed, x, SHAPE[0])
    assert torch.equal(got, x.float() @ packed.to_dense().float().T)


@pytest.mark.parametrize("case, target", mostly_long(TURNS, *KEPT[:1]))
def test_the_input_arrays_say_what_the_matrix_says(case, target):
    format, block, dtype = BLOCKS[case]
    packed, _, dy, text = gradient("1", format, *SHAPE, block, dtype)
    got = walk(compile_kernel(text, target), packed, dy, SHAPE[1])
    assert torch.equal(got, dy.float() @ packed.to_dense().float())


@pytest.mark.parametrize("case, target", mostly_long(SAMPLED))
def test_the_values_arrays_say_what_the_matrix_says(case, target):
    format, block, dtype = BLOCKS[case]
    packed, x, dy, text = gradient("values", format, *SHAPE, block, dtype)
    got = walk_shares(compile_kernel(text, target), packed, x, dy)
    assert torch.equal(got, packed.pattern.gather(dy.float().T @ x.float()))

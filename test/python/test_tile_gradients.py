# SPDX-License-Identifier: Apache-2.0
"""Gradients of half-type products with dense stored blocks run on tensor cores by the default schedule of sm_90a."""

import pytest
import torch
from strategies import mostly_long, turns
from test_tile_schedules import TARGET, problem, walk

import lacis
from lacis import _core
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.runtime import ptxas
from lacis.runtime.kernels import compile_kernel

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
KEPT = [pair for pair in TURNS if pair[0] in ("128", "Bcsc", "16, f16")]


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

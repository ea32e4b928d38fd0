# SPDX-License-Identifier: Apache-2.0
"""Products of float32 with stored blocks take TF32 where torch lets them, and never otherwise."""

import dataclasses

import pytest
import torch
from strategies import mostly_long
from test_tile_gradients import walk_shares
from test_tile_schedules import problem, walk

import lacis
from lacis import _core
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.runtime import ptxas
from lacis.runtime.kernels import compile_kernel

needs_ptxas = pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
BLOCKS = {
    "64": (lacis.Bsr, (64, 64)),
    "128": (lacis.Bsr, (128, 128)),
    "BlockedEll, 32": (lacis.BlockedEll, (32, 32)),
    "16": (lacis.Bcsc, (16, 16)),
    "8": (lacis.Bsr, (8, 8)),
    "64 x 128": (lacis.Bcsc, (64, 128)),
    "32 x 16": (lacis.Bsr, (32, 16)),
}
SLOTS = ("", "1", "values")
TARGETS = ("cuda:sm_90a", "cuda:sm_80", "cuda:sm_89")
TURNS = [(case, slot, target) for case in BLOCKS for slot in SLOTS for target in TARGETS]
TURNS = [turn for turn in TURNS if turn[:2] != ("8", "values")]
SHAPE = (200, 324, 300)


def layer(case):
    """The weight, the tokens and what arrives for the output; and the kernels by slot, as torch lets them take TF32."""
    packed, x, _ = problem(BLOCKS[case][0], *SHAPE, BLOCKS[case][1], torch.float32)
    spec = dataclasses.replace(capture_einsum("ij,bj->bi", [packed, x], None)[0], tf32=True)
    dy = torch.randint(-3, 4, (SHAPE[2], SHAPE[0])).float()
    return packed, x, dy, {"": spec, **gradient_specs(spec)}


@needs_ptxas
@pytest.mark.parametrize("case, slot, target", mostly_long(TURNS))
def test_kernels_assemble_clean(case, slot, target):
    options = {"ptxas": ptxas.find(), "check_ptxas": True, "stages": True}
    compiled = _core.compile(emit(layer(case)[-1][slot]), target, options)
    of_warpgroups = target == "cuda:sm_90a" and not slot and case in ("64", "128", "64 x 128")
    assert "in tf32" in compiled.stages["tiles"]
    for words in ("m64n256k8.f32.tf32.tf32",) if of_warpgroups else ("m16n8k8.row.col.f32.tf32.tf32", "cvt.rna.tf32"):
        assert words in compiled.stages["ptx"]


@pytest.mark.parametrize("case, slot, target", mostly_long(TURNS))
def test_the_arrays_say_what_the_matrix_says(case, slot, target):
    packed, x, dy, specs = layer(case)
    kernel = compile_kernel(emit(specs[slot]), target)
    if slot == "values":
        assert torch.equal(walk_shares(kernel, packed, x, dy), packed.pattern.gather(dy.T @ x))
        return
    given, want = (dy, dy @ packed.to_dense()) if slot else (x, x @ packed.to_dense().T)
    assert torch.equal(walk(kernel, packed, given, want.shape[1]), want)


def test_ieee_is_the_default():
    packed, x, _, specs = layer("64")
    assert torch.backends.cuda.matmul.fp32_precision != "tf32"
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None)
    assert not spec.tf32 and "tf32" not in emit(spec) and "lacis.tf32" in emit(specs[""])
    halves = emit(specs[""].with_dtype(torch.bfloat16))
    assert "lacis.tf32" not in halves and specs["values"].tf32


@pytest.mark.long
def test_a_cpu_computes_in_float32():
    """The steps of TF32 are taken on a CPU, and lose nothing there."""
    packed, x, _, specs = layer("64")
    steps = [lacis.steps.parse(step) for step in compile_kernel(emit(specs[""]), "cuda:sm_90a").info["steps"]]
    assert steps[-1].mnemonic == "tensorize" and steps[-1].kind == "tf32"
    x = torch.randn_like(x)
    kernel = lacis.compile("ij,bj->bi", packed, x, steps=steps, target="cpu")
    assert "in tf32" in kernel.asm["tiles"]
    want = x.double() @ packed.to_dense().double().T
    assert (kernel(packed, x).double() - want).norm() <= 2.0**-22 * want.norm()


def test_halves_have_no_tf32():
    packed, x, _ = problem(lacis.Bsr, 256, 384, 64, (64, 64))
    steps = compile_kernel(problem(lacis.Bsr, 256, 384, 64, (64, 64))[-1], "cuda:sm_90a").info["steps"]
    steps = [lacis.steps.parse(step) for step in steps]
    steps[-1] = dataclasses.replace(steps[-1], kind="tf32")
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None, steps)
    with pytest.raises(lacis.CompileError, match="tiles: products in tf32 are of f32 operands, not of 'bf16'"):
        compile_kernel(emit(spec), "cuda:sm_90a")

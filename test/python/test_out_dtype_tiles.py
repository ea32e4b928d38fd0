# SPDX-License-Identifier: Apache-2.0
"""`out_dtype=torch.float32` on tensor cores: kernels assemble clean, and gradients are those of a half result."""

import pytest
import torch
from strategies import mostly_long
from test_out_dtype import SINGLE, is_near
from test_plain_tiles import tiled

import lacis
from lacis import _core
from lacis.capture.gradient import gradient_specs
from lacis.runtime import ptxas


def blocks(block: int, rows=256, columns=384) -> lacis.PackedTensor:
    mask = (torch.rand(rows // block, columns // block) < 0.5).repeat_interleave(block, 0).repeat_interleave(block, 1)
    return lacis.pack(torch.randn(rows, columns) * mask, lacis.Bsr(block, block)).to(torch.bfloat16)


def on_tensor_cores(kernel) -> bool:
    return any(step.mnemonic == "tensorize" and step.kind is None for step in kernel.steps)


TILES = [(t, b, e) for t in ("cuda:sm_90a", "cuda:sm_80") for b in (128, 64, 32, 16, 8) for e in (False, True)]


@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("target, block, adds", mostly_long(TILES, ("cuda:sm_90a", 16, True)))
def test_tiles_assemble_clean(target, block, adds):
    """No C75xx and no spill; the residual, which is read where it is stored, too."""
    packed, x = blocks(block), torch.zeros(64, 384).bfloat16()
    bias, residual = torch.zeros(256).bfloat16(), torch.zeros(64, 256).bfloat16()
    after = lacis.Epilogue(bias=bias, activation="gelu", residual=residual) if adds else None
    kernel = lacis.compile("ij,bj->bi", packed, x, target=target, epilogue=after, out_dtype=SINGLE)
    assert on_tensor_cores(kernel) or (adds and block < 64 and target != "cuda:sm_90a"), kernel.remarks
    _core.compile(kernel.text, target, {"ptxas": ptxas.find(), "check_ptxas": True})
    rounds = kernel.spec.rounded() if on_tensor_cores(kernel) else kernel.spec
    assert kernel.family.specs == gradient_specs(rounds)  # on tensor cores, too


SAMPLED = [(target, block) for target in ("cuda:sm_90a", "cuda:sm_80") for block in (128, 64, 32, 16)]


@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("target, block", mostly_long(SAMPLED))
def test_sampled_tiles_assemble_clean(target, block):
    pattern, factors = blocks(block).pattern, [torch.zeros(size, 64).bfloat16() for size in (256, 384)]
    kernel = lacis.compile("ij,ik,jk->ij", pattern, *factors, target=target, out_dtype=SINGLE)
    assert on_tensor_cores(kernel), kernel.remarks
    _core.compile(kernel.text, target, {"ptxas": ptxas.find(), "check_ptxas": True})


@pytest.mark.long
@pytest.mark.parametrize("strict", [False, True])
def test_gradients_stay_on_tensor_cores(strict):
    """They are the kernels of the half result, on what arrives rounded; without tiles nothing is rounded."""
    packed, x = blocks(16), torch.zeros(64, 384).bfloat16()
    kernel = lacis.compile("ij,bj->bi", packed, x, target="cuda:sm_90a", out_dtype=SINGLE, strict=strict)
    arrives = SINGLE if strict else torch.bfloat16
    assert on_tensor_cores(kernel) != strict
    assert [o.dtype for o in kernel.family.specs["1"].operands] == [torch.bfloat16, arrives]
    assert kernel.family.specs == gradient_specs(kernel.spec if strict else kernel.spec.rounded())
    gradient = kernel.family.gradient("1")
    assert on_tensor_cores(gradient.kernel) != strict
    dense, stored = gradient.as_taken([torch.randn(64, 256)], [packed.values.float(), torch.zeros(1).int()])
    assert [each.dtype for each in (*dense, *stored)] == [arrives, torch.bfloat16, torch.int32]


PLAIN = [(e, b) for e in ("ij,bj->bi", "ij,bj->ib", "ij,jk->ik") for b in (16, 64)]


@pytest.mark.parametrize("expression, block", mostly_long(PLAIN))
def test_tiles_in_plain_loops(expression, block):
    """The numbers of the tiles, on a CPU."""
    packed, sizes = blocks(block), {"i": 256, "j": 384, "b": 40, "k": 40}
    given = torch.randn([sizes[letter] for letter in expression[3:5]]).bfloat16()
    kernel = tiled(expression, [packed, given], "cuda:sm_90a", out_dtype=SINGLE)
    got = kernel(packed, given)
    assert got.dtype == SINGLE
    assert is_near(got, torch.einsum(expression, packed.to_dense().double(), given.double()), 21)

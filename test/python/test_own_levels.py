# SPDX-License-Identifier: Apache-2.0
"""Large stored blocks over the levels of their own format, in TF32: the steps of GPUs, run in plain loops on a CPU."""

import dataclasses

import pytest
import torch

import lacis
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.runtime.kernels import compile_kernel

BLOCKS = [(256, 256), (192, 128), (128, 192), (320, 64)]
SAMPLED = ("ij,bi,bj->ij", "ij,ib,jb->ij")


@pytest.mark.long
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
@pytest.mark.parametrize("expression", ["ij,bj->bi", "ij,bi->bj", *SAMPLED])
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_products_in_tf32(block, expression, target):
    """In plain loops nothing is rounded."""
    torch.manual_seed(0)
    rows, columns = 3 * block[0] - 8, 3 * block[1] - 24
    kept = (torch.rand(3, 3) < 0.7).repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
    weight, left, right = torch.randn(rows, columns) * kept, torch.randn(200, rows), torch.randn(200, columns)
    packed = lacis.pack(weight, lacis.Bsr(*block))
    if expression in SAMPLED:
        given = (left, right) if expression == SAMPLED[0] else (left.T.contiguous(), right.T.contiguous())
        operands, want = (packed.pattern, *given), packed.pattern.gather(left.double().T @ right.double())
    elif expression == "ij,bj->bi":
        operands, want = (packed, right), right.double() @ weight.double().T
    else:
        operands, want = (packed, left), left.double() @ weight.double()
    spec = dataclasses.replace(capture_einsum(expression, list(operands), None)[0], tf32=True)
    steps = [lacis.steps.parse(text) for text in compile_kernel(emit(spec), target).info["steps"] if "upto" not in text]
    if expression in SAMPLED and block == (256, 256):  # columns of a sampled block are those of a tile at the most
        pytest.skip("a sampled block of 256 columns of float32 fills no tile")
    assert any(step.mnemonic == "tensorize" for step in steps)
    got = lacis.compile(expression, *operands, steps=steps, target="cpu")(*operands)
    got = got if isinstance(got, torch.Tensor) else got.values
    assert (got.double() - want).norm() <= 1e-6 * want.norm()

# SPDX-License-Identifier: Apache-2.0
"""What follows a sum on tiles: residuals where no dense tile is as large, and numbers."""

import dataclasses

import pytest
import torch

import lacis
from lacis.capture import Epilogue, capture_einsum
from lacis.emit import emit
from lacis.runtime.kernels import compile_kernel

FORWARD, TURNED = "ij,bj->bi", "ij,jb->ib"
WIDE = (
    "#lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 128 : compressed, "
    "(i floordiv 64 mod 2, j floordiv 64 mod 2) : bitmap, link, i mod 64 : dense, j mod 64 : dense)>"
)


def tile_steps(expression, packed, x, after, layout=None):
    """The steps of sm_90a for more than a few tokens, on this layout, or on that of the default."""
    spec = capture_einsum(expression, [packed, x], None, epilogue=after)[0]
    texts = compile_kernel(emit(spec), "cuda:sm_90a").info["steps"]
    steps = [lacis.steps.parse(text) for text in texts if "upto" not in text]
    if layout is None:
        return steps
    return [dataclasses.replace(step, layout=layout) if step.mnemonic == "regroup" else step for step in steps]


@pytest.mark.long
@pytest.mark.parametrize("tokens", [8, 304])
@pytest.mark.parametrize(
    "expression, block, layout",
    [(FORWARD, 64, None), (TURNED, 64, None), (TURNED, 64, WIDE), (FORWARD, 256, None), (TURNED, 192, None)],
)
def test_residual_of_any_layout(expression, block, layout, tokens):
    """It arrives in the place of a dense tile that is as large; else its elements are read where they lie."""
    torch.manual_seed(0)
    kept = (torch.rand(5, 4) < 0.6).repeat_interleave(block, 0).repeat_interleave(block, 1)[:296, :200]
    weight, x = torch.randn(296, 200).bfloat16() * kept, torch.randn(tokens, 200).bfloat16()
    packed, residual = lacis.pack(weight, lacis.Bsr(block, block)), torch.randn(tokens, 296).bfloat16()
    want = torch.relu(x.double() @ weight.double().T) + residual.double()
    if expression == TURNED:
        x, residual, want = (tensor.T.contiguous() for tensor in (x, residual, want))
    after = Epilogue(activation="relu", residual=residual)
    steps = tile_steps(expression, packed, x, after, layout)
    kernel = lacis.compile(expression, packed, x, epilogue=after, steps=steps, target="cpu")
    assert ("lacis.read_tile" in kernel.asm["tiles"]) == (block == 64 and layout is None)
    assert (kernel(packed, x).double() - want).norm() <= 2.0**-8 * want.norm()


@pytest.mark.long
@pytest.mark.parametrize("expression", [FORWARD, TURNED, "ij,bj->ib", "ij,jb->bi"])
@pytest.mark.parametrize("block", [16, 64, 128, 256])
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
def test_residual_of_tf32(expression, block, target, tf32):
    """Its elements are read where they lie."""
    torch.manual_seed(0)
    kept = (torch.rand(2, 3) < 0.6).repeat_interleave(256, 0).repeat_interleave(256, 1)[:296, :520]
    weight, sizes = torch.randn(296, 520) * kept, {"i": 296, "j": 520, "b": 72}
    x, residual = (torch.randn([sizes[n] for n in term]) for term in expression[3:].split("->"))
    packed = lacis.pack(weight, lacis.Bsr(block, block))
    want = torch.relu(torch.einsum(expression, weight.double(), x.double())) + residual.double()
    after = Epilogue(activation="relu", residual=residual)
    kernel = lacis.compile(expression, packed, x, epilogue=after, target=target)
    steps = [step for step in kernel.steps if "upto" not in step.text()]
    assert any(step.mnemonic == "tensorize" and step.kind == "tf32" for step in steps)
    got = lacis.compile(expression, packed, x, epilogue=after, steps=steps, target="cpu")(packed, x)
    assert (got.double() - want).norm() <= 2.0**-20 * want.norm()


@pytest.mark.long
@pytest.mark.parametrize("block", [64, 256])
def test_a_scale_is_read_once_for_a_tile(block):
    """A number of the epilogue, over an execution layout and over a format's own levels."""
    torch.manual_seed(0)
    weight, x = torch.randn(512, 512).bfloat16(), torch.randn(70, 512).bfloat16()
    packed, after = lacis.pack(weight, lacis.Bsr(block, block)), Epilogue(scale=torch.tensor(0.5).bfloat16())
    steps = tile_steps(FORWARD, packed, x, after)
    kernel = lacis.compile(FORWARD, packed, x, epilogue=after, steps=steps, target="cpu")
    assert "lacis.mma" in kernel.asm["tiles"]
    want = x.double() @ weight.double().T / 2
    assert (kernel(packed, x).double() - want).norm() <= 2.0**-8 * want.norm()

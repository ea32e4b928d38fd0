# SPDX-License-Identifier: Apache-2.0
"""All steps of a GPU on a CPU, those of its nests for few tokens among them, against float64."""

import pytest
import torch
from test_plain_tiles import check

import lacis
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.runtime.kernels import compile_kernel

BLOCKS = ((16, 16), (32, 32), (16, 32), (64, 64), (64, 128), (128, 128))
TOKENS = (1, 8, 9, 32, 33)  # the limits of the nests, and one more
ORDERS = {"ij,bj->bi": TOKENS, "ij,jb->ib": (8, 16, 32, 40)}  # tiles take tokens that come last by eights
TURNED = "(i, j) -> (i floordiv 32 : dense, j floordiv 32 : compressed, j mod 32 : dense, i mod 32 : dense)"


def steps_for(spec, target: str) -> list:
    """Those of each part of the schedule; nests for few tokens, which warps multiply, are among them."""
    texts = compile_kernel(emit(spec), target).info["steps"]
    assert any('kind = "mma"' in text for text in texts)
    return [lacis.steps.parse(text) for text in texts]


@pytest.mark.long
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("expression", ORDERS)
def test_any_number_of_tokens(expression, block, target):
    torch.manual_seed(0)
    kept = (torch.rand(256 // block[0], 384 // block[1]) < 0.5).repeat_interleave(block[0], 0)
    packed = lacis.pack((torch.randn(256, 384) * kept.repeat_interleave(block[1], 1)).bfloat16(), lacis.Bsr(*block))
    for tokens in ORDERS[expression]:
        x = torch.randn((tokens, 384) if expression[3] == "b" else (384, tokens)).bfloat16()
        steps = steps_for(capture_einsum(expression, (packed, x), None)[0], target)
        got = lacis.compile(expression, packed, x, steps=steps, target="cpu")(packed, x)
        check(got, torch.einsum(expression, packed.to_dense().double(), x.double()))


@pytest.mark.long
@pytest.mark.parametrize("tokens", TOKENS)
def test_blocks_that_are_stored_transposed(tokens):
    torch.manual_seed(0)
    kept = (torch.rand(8, 12) < 0.5).repeat_interleave(32, 0).repeat_interleave(32, 1)
    packed, x = lacis.pack((torch.randn(256, 384) * kept).bfloat16(), TURNED), torch.randn(tokens, 384).bfloat16()
    steps = steps_for(capture_einsum("ij,bj->bi", (packed, x), None)[0], "cuda:sm_90a")
    got = lacis.compile("ij,bj->bi", packed, x, steps=steps, target="cpu")(packed, x)
    check(got, x.double() @ packed.to_dense().double().T)


@pytest.mark.long
@pytest.mark.parametrize("format, walked", [(lacis.Bcsc(32, 32), True), (lacis.Bsr(32, 32), False)], ids=str)
def test_no_gradient_walks_an_index_that_its_tiles_have_no_need_of(format, walked):
    packed, x = lacis.pack(torch.randn(256, 384).bfloat16(), format), torch.randn(7, 384).bfloat16()
    spec = gradient_specs(capture_einsum("ij,bj->bi", (packed, x), None)[0])["1"]
    kernel = compile_kernel(emit(spec), "cuda:sm_90a")
    assert any('kind = "mma"' in text for text in kernel.info["steps"]) == walked
    assert "index" not in {derived["function"] for derived in kernel.info["derived"]}

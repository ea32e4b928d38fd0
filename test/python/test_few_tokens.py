# SPDX-License-Identifier: Apache-2.0
"""All steps of a GPU on a CPU, those of its nests for few tokens among them, against float64."""

import pytest
import torch
from test_plain_tiles import check

import lacis
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.runtime.kernels import compile_kernel

BLOCKS = ((16, 16), (32, 32), (16, 32), (64, 64), (64, 128), (128, 128))
TOKENS = (1, 8, 9, 32, 33)  # the limits of the nests, and one more


@pytest.mark.long
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_any_number_of_tokens(block, target):
    torch.manual_seed(0)
    kept = (torch.rand(256 // block[0], 384 // block[1]) < 0.5).repeat_interleave(block[0], 0)
    packed = lacis.pack((torch.randn(256, 384) * kept.repeat_interleave(block[1], 1)).bfloat16(), lacis.Bsr(*block))
    for tokens in TOKENS:
        x = torch.randn(tokens, 384).bfloat16()
        texts = compile_kernel(emit(capture_einsum("ij,bj->bi", (packed, x), None)[0]), target).info["steps"]
        assert any('kind = "mma"' in text for text in texts)
        steps = [lacis.steps.parse(text) for text in texts]
        got = lacis.compile("ij,bj->bi", packed, x, steps=steps, target="cpu")(packed, x)
        check(got, x.double() @ packed.to_dense().double().T)

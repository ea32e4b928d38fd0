# SPDX-License-Identifier: Apache-2.0
"""Random calls of attention on a GPU, forward and backward, against dense attention in float64."""

import pathlib
import sys

import poison
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import attention_matrix  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
LENGTHS = (*attention_matrix.LENGTHS, 1000)
ALIGNED = (1, 64, 65, 132, 192, 256, 320, 1000, 1024)
WIDTHS = ((32, 32), (64, 64), (128, 128), (64, 128), (128, 64), (80, 80), (192, 128), (256, 256))
SIDES = (*attention_matrix.SIDES, (256, 128))


@pytest.mark.parametrize("shard", range(16))
def test_calls_of_attention(shard):
    for case in attention_matrix.cases(128, DTYPES, seed=2, lengths=LENGTHS)[shard::16]:
        with poison.allocations():
            attention_matrix.check(case, "cuda")


@pytest.mark.parametrize("shard", range(32))
def test_calls_that_tiles_take(shard):
    half = attention_matrix.HALF
    cases = attention_matrix.cases(256, half, seed=3, lengths=ALIGNED, depths=WIDTHS, blocks=SIDES)
    for case in cases[shard::32]:
        with poison.allocations():
            attention_matrix.check(case, "cuda")

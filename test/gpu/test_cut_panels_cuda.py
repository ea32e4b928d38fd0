# SPDX-License-Identifier: Apache-2.0
"""Long rows of blocks shared on a GPU, where there are few tokens: against float64, the same bits each time."""

import families
import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(families.CAPABILITY < (8, 0), reason="needs tensor cores of sm_80 or later")
TARGETS = [("auto", "sm_90a"), (families.AMPERE, "sm_80")]


@pytest.mark.parametrize("target, name", TARGETS, ids=[name for _, name in TARGETS])
@pytest.mark.parametrize("after", [None, "gelu", "silu"])
@pytest.mark.parametrize("block", [128, 64, 32, 16])
@pytest.mark.parametrize("slot", ["", "1"])
def test_cut(slot, block, after, target, name):
    if slot and after:
        pytest.skip("an epilogue follows the forward product")
    if name == "sm_80" and block < 64 and after == "silu":
        pytest.skip("with a residual, small blocks are no tiles there")
    for rows, columns, tokens in ((512, 4096, 33), (2048, 2304, 1000), (1024, 4096, 2048), (1024, 4096, 2049)):
        check(families.uneven(slot, (block, block), rows, columns, tokens, 0.9, target, after), tokens)


@pytest.mark.parametrize("target, name", TARGETS, ids=[name for _, name in TARGETS])
@pytest.mark.parametrize("block", [128, 64, 32, 16])
@pytest.mark.parametrize("slot", ["", "1"])
def test_cut_in_tf32(slot, block, target, name):
    for rows, columns, tokens in ((512, 4096, 33), (2048, 2304, 1000), (1024, 4096, 2048), (1024, 4096, 2049)):
        problem = families.in_tf32(slot, (block, block), rows, columns, tokens, 0.9, target, is_uneven=True)
        check(problem, tokens)


@pytest.mark.parametrize("block", [(128, 128), (64, 64), (32, 32), (16, 16), (32, 16), (16, 64)], ids=str)
@pytest.mark.parametrize("after", [None, "gelu", "silu"])
def test_few_tokens(block, after):
    """Two blocks of the grid share a row, from nine tokens on."""
    for tokens in (1, 8, 9, 16, 31, 32):
        problem = families.uneven("", block, 512, 4096, tokens, 0.9, after=after)
        check(problem, tokens)


@pytest.mark.parametrize("target, name", TARGETS, ids=[name for _, name in TARGETS])
@pytest.mark.parametrize("block", [128, 64, 32, 16])
def test_parts_of_shares(block, target, name):
    """Sums of few shares are cut along the tokens, from 2048 of them on; those of gathered blocks from 1024."""
    for tokens in (1020, 1024, 2040, 2048, 4100):
        problem = families.default("values", lacis.Bsr, (block, block), 512, 1024, tokens, 0.5, target)
        check(problem, tokens)


def check(problem, tokens: int):
    with torch.no_grad():
        got = problem.run()
        error = (got.double() - problem.want).norm() / problem.want.norm()
        assert error < 6e-3, f"{tokens} tokens: error {error}"
        assert all(torch.equal(got, problem.run()) for _ in range(20))

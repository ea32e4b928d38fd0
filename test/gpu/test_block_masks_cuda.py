# SPDX-License-Identifier: Apache-2.0
"""Patterns as block masks of the compiled FlexAttention."""

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

import lacis

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
S = 512


def entries():
    return lacis.Pattern.from_mask(torch.rand(S, S, device="cuda") < 0.2, lacis.Csr)


PATTERNS = {
    "causal": lambda: lacis.Causal(block=64),
    "by head": lambda: lacis.BigBird(block=128, different_layout_per_head=True),
    "entries": entries,
    "chosen by the data": lambda: lacis.TopKBlocks(3, block=64),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_flex_attention_has_the_numbers_of_attention(name):
    torch.compiler.reset()
    q, k, v = (torch.randn(2, 4, S, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    pattern = PATTERNS[name]()
    made, expected = lacis.block_mask(q, k, pattern), lacis.attention(q, k, v, pattern)
    found = torch.compile(flex_attention, dynamic=False)(q, k, v, block_mask=made)
    torch.testing.assert_close(found, expected, atol=2e-2, rtol=2e-2)
    torch.testing.assert_close(lacis.attention(q, k, v, made), expected, atol=2e-2, rtol=2e-2)

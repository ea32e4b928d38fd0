# SPDX-License-Identifier: Apache-2.0
"""Attention and its gradients read a stage before they give it back: what the assembler made of them."""

import machine_code
import pytest
import torch
from test_chain_results import attend_lse
from test_chain_tiles import blocks, operands
from test_chain_tiles_gradients import chains, given
from test_machine_code import needs_tools

import lacis
from lacis.attentions.walks import by_columns


@needs_tools
@pytest.mark.long
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
@pytest.mark.parametrize("side, depth", [(64, 64), (128, 128), (16, 64)])
def test_no_arrive_passes_a_load(side, depth, target):
    """Of the output, of the gradient of q, and of those of k and v."""
    mask = blocks(256, 256, (side, side))
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(side, side))
    kernels = [attend_lse.compile(*operands(256, 256, depth, depth), pattern, target=target)]
    inputs, _ = given(256, 256, depth, depth, torch.bfloat16, mask)
    for chain, walked in zip(chains("causal"), (pattern, by_columns(pattern))):
        kernels.append(chain.compile(*inputs, walked.batched((2,), "h"), target=target))
    texts = [machine_code.disassemble(kernel.asm["ptx"]) for kernel in kernels]
    assert [machine_code.passed_loads(text) for text in texts] == [[], [], []]
    assert any("LDSM" in text for text in texts) and any("ARRIVE" in text for text in texts)

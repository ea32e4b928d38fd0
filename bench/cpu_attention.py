# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention` on the CPU beside scaled_dot_product_attention: causal, and with a part of the blocks of 64."""

from __future__ import annotations

import lacis
import torch
import torch.nn.functional as F

from .measure import Case, measure

TITLE = "Attention on the CPU, 12 heads of 64, 2048 tokens, float32"
HEADS, TOKENS, HEAD, BLOCK = 12, 2048, 64, 64
MUSTS = {0.25: "≥ 2.0", 0.1: "≥ 4.5"}  # of the forward pass, by the blocks that are kept
PEER = "torch SDPA"


def run() -> list[Case]:
    rule, is_causal = lacis.Causal(block=BLOCK), {"is_causal": True}
    found = [forward("causal", rule, is_causal, ""), gradients("causal", rule, is_causal)]
    for kept, must in MUSTS.items():
        layout = torch.rand(TOKENS // BLOCK, TOKENS // BLOCK) < kept
        layout |= torch.eye(len(layout), dtype=torch.bool)
        mask = layout.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
        pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(BLOCK, BLOCK))
        how = f"{kept:.0%} of the blocks", pattern, {"attn_mask": mask}
        found += [forward(*how, must), gradients(*how)]
    return found


def _operands() -> list[torch.Tensor]:
    return [torch.randn(1, HEADS, TOKENS, HEAD) for _ in range(3)]


def forward(name: str, pattern, how: dict, must: str) -> Case:
    operands = _operands()
    ours = lambda: lacis.attention(*operands, pattern)
    dense = lambda: F.scaled_dot_product_attention(*operands, **how)
    torch.testing.assert_close(ours(), dense(), rtol=1e-4, atol=1e-4)
    return Case(f"{name}, forward", measure({"lacis": ours, PEER: dense}), must)


def gradients(name: str, pattern, how: dict) -> Case:
    """With the forward pass."""
    operands, arrived = [x.requires_grad_() for x in _operands()], _operands()[0]

    def both(function):
        return lambda: torch.autograd.grad(function(), operands, arrived)

    ours = both(lambda: lacis.attention(*operands, pattern))
    dense = both(lambda: F.scaled_dot_product_attention(*operands, **how))
    torch.testing.assert_close(ours(), dense(), rtol=1e-4, atol=1e-4)
    return Case(f"{name}, forward and backward", measure({"lacis": ours, PEER: dense}), "")

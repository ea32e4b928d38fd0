# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention` beside FlexAttention, which torch.compile makes, and beside SDPA: 8192 tokens, 32 heads, bf16.

FlexAttention has no backward pass for blocks of 64. All are replayed in CUDA graphs.
"""

from __future__ import annotations

import lacis
import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from .fused_attention import HEADS, TOKENS, dense, operands
from .measure import Case, measure
from .real_layers import captured

TITLE = "Attention beside FlexAttention, 32 heads, 8192 tokens, bf16"
# Of heads of so many, blocks of a side and a share of them kept: × FlexAttention, forward and both passes.
PLAIN = [
    (64, 128, 0.25, "≥ 1.3"),
    (64, 128, 0.1, "≥ 1.3"),
    (64, 64, 0.25, ""),
    (128, 128, 0.25, "≥ 1.3"),
    (128, 128, 0.1, "≥ 1.3"),
    (128, 64, 0.25, ""),
]


def scores(slope: torch.Tensor) -> dict:
    """Functions of FlexAttention's documentation, by name."""
    return {
        "distance": lambda s, b, h, i, j: s + (i - j),
        "ALiBi": lambda s, b, h, i, j: s + slope[h] * (i - j),
        "soft cap": lambda s, b, h, i, j: 20 * torch.tanh(s / 20),
    }


def block_mask(blocks: torch.Tensor, side: int) -> BlockMask:
    """Of blocks [nq, nk], which are kept whole."""
    order = blocks.int().argsort(dim=-1, descending=True, stable=True).int()[None, None]
    count = blocks.sum(-1, dtype=torch.int32)[None, None]
    return BlockMask.from_kv_blocks(torch.zeros_like(count), order, count, order, side)


def timed(depth: int, chosen, of_flex: dict, learns: bool, score=None, others: dict | None = None, heads: int = HEADS):
    """Milliseconds of a forward pass, or of both, of lacis, FlexAttention, SDPA without a mask, and of others."""
    q, k, v, slope = operands(depth, heads)
    inputs = [x.requires_grad_(learns) for x in (q, k, v)]
    torch.compiler.reset()  # else the ninth variant of one function is not compiled
    flex = torch.compile(flex_attention, dynamic=False)
    functions = {
        "lacis": lambda *x: lacis.attention(*x, chosen, score=score),
        "flex": lambda *x: flex(*x, score_mod=score, **of_flex),
        "torch dense": dense,
        **(others or {}),
    }

    def passes(attend):
        out = attend(*inputs)
        return torch.autograd.grad(out, inputs, slope) if learns else out

    with torch.no_grad():
        ours, theirs = (functions[name](*inputs) for name in ("lacis", "flex"))
        if not (ours - theirs).norm() <= 2e-2 * theirs.norm():
            raise AssertionError(f"heads of {depth}: not what FlexAttention computes")
    with torch.set_grad_enabled(learns):
        contenders = {name: captured(lambda each=each: passes(each)) for name, each in functions.items()}
        return measure(contenders, "cuda", rounds=20, flush=True)


def entries(blocks: torch.Tensor, side: int) -> torch.Tensor:
    return blocks.repeat_interleave(side, 0).repeat_interleave(side, 1)


def drawn(side: int, share: float) -> torch.Tensor:
    return torch.rand(TOKENS // side, TOKENS // side, device="cuda") < share


def plain(depth: int, side: int, share: float, must: str) -> list[Case]:
    blocks, name = drawn(side, share), f"heads of {depth}, blocks of {side}, {1 - share:.0%} zeros"
    mask, flex = entries(blocks, side), {"block_mask": block_mask(blocks, side)}
    if side == 64:  # its own tiles are of 128
        flex["kernel_options"] = {"BLOCK_M": side, "BLOCK_N": side}
    given = depth, lacis.Pattern.from_mask(mask, lacis.Bsr(side, side)), flex
    alone = timed(*given, False, others={"masked": lambda *x: dense(*x, mask)})
    found = [Case(f"forward, {name}", alone, must)]
    if side == 128:
        both = timed(*given, True)
        found.append(Case(f"backward, {name}", {peer: both[peer] - alone[peer] for peer in both}, must))
    return found


def big_bird() -> Case:
    side, rule = 64, lacis.BigBird(block=64)
    blocks = rule.layout(16, TOKENS, TOKENS, side)[0].cuda()
    mask = create_block_mask(lambda b, h, i, j: blocks[i // side, j // side], None, None, TOKENS, TOKENS, device="cuda")
    times = timed(64, rule, {"block_mask": mask}, True, heads=16)
    return Case("both, 16 heads of 64, BigBird of 64", times, "≥ 5.0")


def with_scores(depth: int) -> list[Case]:
    blocks, slope, side = drawn(128, 0.25), torch.linspace(-0.5, -0.01, HEADS, device="cuda"), 128
    kept, flex = lacis.Pattern.from_mask(entries(blocks, side), lacis.Bsr(side, side)), block_mask(blocks, side)
    others, found = {"without": lambda *x: lacis.attention(*x, kept)}, []
    for name, score in scores(slope).items():
        times = timed(depth, kept, {"block_mask": flex}, False, score, others)
        case = f"forward, heads of {depth}, {name}, blocks of {side}, 75% zeros"
        found.append(Case(case, times, "≥ 1.4 × flex, 0.8 × without"))
    return found


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    found = [case for each in PLAIN for case in plain(*each)]
    return [*found, big_bird(), *with_scores(64), *with_scores(128)]

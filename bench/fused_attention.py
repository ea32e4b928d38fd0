# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention` and its gradients on tensor cores: 8192 tokens, 32 heads, bf16, beside SDPA without a mask.

All are replayed in CUDA graphs: a call takes 0.2 to 0.4 ms of the host, which is as long as the kernel takes. A
backward pass is what both passes take beyond the forward pass.
"""

from __future__ import annotations

import itertools

import lacis
import torch

from .measure import Case, measure
from .real_layers import captured

TITLE = "Attention on tensor cores, 32 heads, 8192 tokens, bf16"
HEADS, TOKENS = 32, 8192
# Of blocks kept, by depth and side: how many times as fast as dense attention, forward and, alone, backward.
MUSTS = {
    (64, 64): {1.0: 0.95, 0.25: 3.8, 0.1: 7.8},
    (64, 128): {0.25: 3.65, 0.1: 7.5},
    (128, 64): {0.25: 3.3, 0.1: 7.0},
    (128, 128): {1.0: 1.0, 0.25: 3.55, 0.1: 7.6},
    (64, 32): {0.25: 1.5, 0.1: 3.4},
    (64, 16): {0.1: 1.9, 0.05: 3.5},
    (128, 32): {0.25: 1.5, 0.1: 3.4},
    (128, 16): {0.1: 1.9, 0.05: 3.5},
}
BACKWARD = {
    (64, 64): {1.0: 0.85, 0.25: 3.2, 0.1: 6.8},
    (64, 128): {0.25: 3.1, 0.1: 6.6},
    (128, 64): {1.0: 0.85, 0.25: 3.5, 0.1: 7.4},
    (128, 128): {0.25: 3.4, 0.1: 7.2},
}
BIG_BIRD = {64: 10.3, 128: 9.8}
CAUSAL = {64: 0.95, 128: 0.95}  # beside causal attention
dense = torch.nn.functional.scaled_dot_product_attention


def operands(depth: int, heads: int = HEADS, tokens: int = TOKENS) -> list[torch.Tensor]:
    return [torch.randn(1, heads, tokens, depth, device="cuda").bfloat16() for _ in range(4)]


def pattern(side: int, kept: float, tokens: int = TOKENS) -> lacis.Pattern:
    blocks = torch.rand(tokens // side, tokens // side, device="cuda") < kept
    mask = blocks.repeat_interleave(side, 0).repeat_interleave(side, 1)
    return lacis.Pattern.from_mask(mask, lacis.Bsr(side, side))


def timed(depth: int, chosen, learns: bool, heads: int = HEADS) -> dict[str, float]:
    """Milliseconds of a forward pass, or of both."""
    q, k, v, slope = operands(depth, heads)
    is_causal = isinstance(chosen, lacis.Causal)
    inputs = [x.requires_grad_(learns) for x in (q, k, v)]

    def run(attend):
        out = attend(*inputs)
        return torch.autograd.grad(out, inputs, slope) if learns else out

    with torch.set_grad_enabled(learns):
        contenders = {
            "lacis": captured(lambda: run(lambda *x: lacis.attention(*x, chosen))),
            "torch dense": captured(lambda: run(lambda *x: dense(*x, is_causal=is_causal))),
        }
        return measure(contenders, "cuda", rounds=20, flush=True)


def forward(depth: int, name: str, chosen, must: float) -> Case:
    return Case(f"forward, heads of {depth}, {name}", timed(depth, chosen, False), f"≥ {must}")


def backward(depth: int, name: str, chosen, must: float) -> Case:
    alone, both = (timed(depth, chosen, learns) for learns in (False, True))
    return Case(f"backward, heads of {depth}, {name}", {peer: both[peer] - alone[peer] for peer in both}, f"≥ {must}")


def check(depth: int, side: int) -> None:
    """The output and the gradients against those of float64, which run statement by statement."""
    *inputs, slope = operands(depth, heads=2, tokens=512)
    chosen, found = pattern(side, 0.5, tokens=512), []
    for dtype in (slope.dtype, torch.float64):
        leaves = [x.detach().to(dtype).requires_grad_() for x in inputs]
        out = lacis.attention(*leaves, chosen)
        found.append([out.detach(), *torch.autograd.grad(out, leaves, slope.to(dtype))])
    for name, got, want in zip(("output", "query", "key", "value"), *found):
        error = (got.double() - want).norm() / want.norm()
        if not error < 6e-3:
            raise AssertionError(f"fused attention, blocks of {side}, {name}: error {error}")


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    found = []
    for depth, side in MUSTS:
        check(depth, side)
    for measured, musts_of in ((forward, MUSTS), (backward, BACKWARD)):
        for (depth, side), musts in musts_of.items():
            for kept, must in musts.items():
                found.append(measured(depth, f"blocks of {side}, {1 - kept:.0%} zeros", pattern(side, kept), must))
    bird = lacis.BigBird(block=64)
    for depth, must in BIG_BIRD.items():
        found.append(forward(depth, "BigBird of 64", bird, must))
    found.append(Case("both, 16 heads of 64, BigBird of 64", timed(64, bird, True, heads=16), "≥ 4.0"))
    for depth, side in itertools.product(CAUSAL, (64, 128)):
        causal = lacis.Causal(block=side)
        found.append(forward(depth, f"causal, blocks of {side}", causal, CAUSAL[depth]))
        found.append(backward(depth, f"causal, blocks of {side}", causal, 0.85))
    return found

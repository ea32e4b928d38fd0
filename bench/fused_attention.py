# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention` as one kernel on tensor cores: 8192 tokens, 32 heads, bf16, beside SDPA without a mask.

Both are replayed in CUDA graphs: a call takes 0.2 to 0.4 ms of the host, which is as long as the kernel takes.
"""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure
from .real_layers import captured

TITLE = "Attention as one kernel on tensor cores, 32 heads, 8192 tokens, bf16"
HEADS, TOKENS = 32, 8192
# Of blocks kept, by depth and side: how many times as fast as dense attention.
MUSTS = {
    (64, 64): {1.0: 0.95, 0.25: 3.8, 0.1: 7.8},
    (64, 128): {0.25: 3.65, 0.1: 7.5},
    (128, 64): {0.25: 3.3, 0.1: 7.0},
    (128, 128): {1.0: 1.0, 0.25: 3.55, 0.1: 7.6},
}
BIG_BIRD = {64: 10.3, 128: 9.8}


def operands(depth: int, heads: int = HEADS, tokens: int = TOKENS) -> list[torch.Tensor]:
    return [torch.randn(1, heads, tokens, depth, device="cuda").bfloat16() for _ in range(3)]


def pattern(side: int, kept: float, tokens: int = TOKENS) -> lacis.Pattern:
    blocks = torch.rand(tokens // side, tokens // side, device="cuda") < kept
    mask = blocks.repeat_interleave(side, 0).repeat_interleave(side, 1)
    return lacis.Pattern.from_mask(mask, lacis.Bsr(side, side))


def case(depth: int, name: str, chosen, must: float) -> Case:
    q, k, v = operands(depth)
    contenders = {
        "lacis": captured(lambda: lacis.attention(q, k, v, chosen)),
        "torch dense": captured(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)),
    }
    return Case(f"heads of {depth}, {name}", measure(contenders, "cuda", rounds=20, flush=True), f"≥ {must}")


def check(depth: int, side: int) -> None:
    """Against float64, which runs statement by statement."""
    q, k, v = operands(depth, heads=2, tokens=512)
    chosen = pattern(side, 0.5, tokens=512)
    want = lacis.attention(q.double(), k.double(), v.double(), chosen)
    error = (lacis.attention(q, k, v, chosen).double() - want).norm() / want.norm()
    if not error < 6e-3:
        raise AssertionError(f"fused attention, blocks of {side}: error {error}")


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    found = []
    with torch.inference_mode():
        for (depth, side), musts in MUSTS.items():
            check(depth, side)
            for kept, must in musts.items():
                found.append(case(depth, f"blocks of {side}, {1 - kept:.0%} zeros", pattern(side, kept), must))
        for depth, must in BIG_BIRD.items():
            found.append(case(depth, "BigBird of 64", lacis.BigBird(block=64), must))
    return found

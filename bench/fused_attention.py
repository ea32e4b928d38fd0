# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention` as one kernel on tensor cores: 8192 tokens, 32 heads, bf16, beside SDPA without a mask."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure

TITLE = "Attention as one kernel on tensor cores, 32 heads, 8192 tokens, bf16, blocks of 64"
HEADS, TOKENS, BLOCK = 32, 8192, 64


def case(depth: int, kept: float) -> Case:
    q, k, v = (torch.randn(1, HEADS, TOKENS, depth, device="cuda").bfloat16() for _ in range(3))
    side = TOKENS // BLOCK
    layout = torch.rand(1, side, side, device="cuda") < kept
    small = slice(0, 512)
    check(*(x[:, :2, small] for x in (q, k, v)), layout[:, : 512 // BLOCK, : 512 // BLOCK])
    times = measure(
        {
            "lacis": lambda: lacis.attention(q, k, v, layout),
            "torch dense": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v),
        },
        "cuda",
        rounds=20,
        flush=True,
    )
    return Case(f"heads of {depth}, {1 - kept:.0%} zeros", times)


def check(q, k, v, layout) -> None:
    """Against float64, which runs statement by statement."""
    want = lacis.attention(q.double(), k.double(), v.double(), layout)
    error = (lacis.attention(q, k, v, layout).double() - want).norm() / want.norm()
    if not error < 6e-3:
        raise AssertionError(f"fused attention: error {error}")


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    with torch.inference_mode():
        return [case(depth, kept) for depth in (64, 128) for kept in (1.0, 0.25, 0.1)]

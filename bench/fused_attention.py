# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention` and its gradients on tensor cores: 8192 tokens, 32 heads, bf16, beside SDPA without a mask."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure

TITLE = "Attention as one kernel on tensor cores, 32 heads, 8192 tokens, bf16, blocks of 64"
HEADS, TOKENS, BLOCK = 32, 8192, 64


def case(depth: int, kept: float, training: bool) -> Case:
    q, k, v, slope = (torch.randn(1, HEADS, TOKENS, depth, device="cuda").bfloat16() for _ in range(4))
    side = TOKENS // BLOCK
    layout = torch.rand(1, side, side, device="cuda") < kept
    mask = layout[0].repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(BLOCK, BLOCK))  # made once: a layout is read at each call
    small = slice(0, 512)
    check(*(x[:, :2, small] for x in (q, k, v, slope)), layout[:, : 512 // BLOCK, : 512 // BLOCK])
    inputs = [x.requires_grad_(training) for x in (q, k, v)]

    def run(attend):
        with torch.set_grad_enabled(training):
            out = attend(*inputs)
        return torch.autograd.grad(out, inputs, slope) if training else out

    attend = torch.nn.functional.scaled_dot_product_attention
    times = measure(
        {
            "lacis": lambda: run(lambda q, k, v: lacis.attention(q, k, v, pattern)),
            "torch dense": lambda: run(attend),
        },
        "cuda",
        rounds=20,
        flush=True,
    )
    name = f"{'forward and backward' if training else 'forward'}, heads of {depth}, {1 - kept:.0%} zeros"
    return Case(name, times)


def check(q, k, v, slope, layout) -> None:
    """The output and the gradients against those of float64, which run statement by statement."""
    found = []
    for dtype in (q.dtype, torch.float64):
        inputs = [x.detach().to(dtype).requires_grad_() for x in (q, k, v)]
        out = lacis.attention(*inputs, layout)
        found.append([out.detach(), *torch.autograd.grad(out, inputs, slope.to(dtype))])
    for name, got, want in zip(("output", "query", "key", "value"), *found):
        error = (got.double() - want).norm() / want.norm()
        if not error < 6e-3:
            raise AssertionError(f"fused attention, {name}: error {error}")


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    kinds = [(depth, kept) for depth in (64, 128) for kept in (1.0, 0.25, 0.1)]
    return [case(*kind, training) for training in (False, True) for kind in kinds]

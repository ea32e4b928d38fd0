# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention` on blocks that each call chooses: what that costs the host, and the device in a CUDA graph."""

from __future__ import annotations

import lacis
import torch
from lacis.attentions.lists import pattern_of_lists
from lacis.attentions.walks import by_columns

from .host_time import host_times
from .measure import Case, measure
from .real_layers import captured

TITLE = "Attention on the 16 blocks of 64 keys most like each block of queries, 32 heads of 64, bf16"
HEADS, DEPTH, SIDE, KEPT = 32, 64, 64, 16


def host(tokens: int) -> Case:
    """A call and its parts: scores and choice by the rule, the pattern of its lists, their columns for gradients."""
    q, k, v = (torch.randn(1, HEADS, tokens, DEPTH, device="cuda").bfloat16() for _ in range(3))
    rule = lacis.TopKBlocks(KEPT, block=SIDE)
    lists = rule.blocks(q, k)
    made = lambda columns: pattern_of_lists(lists, (1, HEADS), (tokens, tokens), (SIDE, SIDE), columns=columns)
    contenders = {
        "lacis": lambda: by_columns(made(True)),
        "pattern alone": lambda: made(False),
        "rule": lambda: rule.blocks(q, k),
        "whole call": lambda: lacis.attention(q, k, v, rule),
    }
    return Case(f"host, {tokens} tokens", host_times(contenders, "cuda"), "lists to patterns ≤ 40 µs", unit="µs")


def graph(tokens: int) -> Case:
    """Beside the same blocks as a pattern that is kept, and the choice alone."""
    q, k, v = (torch.randn(1, HEADS, tokens, DEPTH, device="cuda").bfloat16() for _ in range(3))
    rule = lacis.TopKBlocks(KEPT, block=SIDE)
    kept = torch.zeros(HEADS, tokens // SIDE, tokens // SIDE, dtype=torch.bool, device="cuda")
    fixed = lacis.Given(kept.scatter(2, rule.blocks(q, k)[0], True).cpu())
    found, same = lacis.attention(q, k, v, rule), lacis.attention(q, k, v, fixed)
    assert (found - same).norm() <= 2**-8 * same.norm()
    contenders = {
        "lacis": captured(lambda: lacis.attention(q, k, v, rule)),
        "kept pattern": captured(lambda: lacis.attention(q, k, v, fixed)),
        "scores and choice": captured(lambda: rule.blocks(q, k)),
        "torch dense": captured(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)),
    }
    times = {name: 1e3 * ms for name, ms in measure(contenders, "cuda", rounds=20, flush=True).items()}
    return Case(f"device, {tokens} tokens", times, "≥ 1.0 × dense", unit="µs")


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    with torch.no_grad():
        return [host(512), *(graph(tokens) for tokens in (2048, 8192))]

# SPDX-License-Identifier: Apache-2.0
"""Attention by warps, as GPUs before sm_90a run it, on the same GPU beside that of sm_90a: 8192 tokens, 32 heads, bf16.

Assembled for sm_90, which has the instructions of sm_80 and 227 KB of shared memory for a block.
"""

from __future__ import annotations

import contextlib

import torch
from lacis.attentions import fused
from lacis.runtime import chain

from .fused_attention import check, pattern, timed
from .measure import Case

TITLE = "Attention by warps beside that of sm_90a, 32 heads, 8192 tokens, bf16"
CASES = [
    (64, 64, 1.0),
    (64, 64, 0.25),
    (64, 128, 0.25),
    (64, 16, 0.1),
    (128, 64, 0.25),
    (128, 128, 1.0),
    (128, 128, 0.25),
]


@contextlib.contextmanager
def by_warps():
    """Kernels of attention are made for another architecture than the GPU has."""
    resolve = chain.resolve_target
    fused._KNOWN.clear()
    chain.resolve_target = lambda target, device, *_: "cuda:sm_90" if device.type == "cuda" else "cpu"
    try:
        yield
    finally:
        fused._KNOWN.clear()
        chain.resolve_target = resolve


def case(depth: int, side: int, share: float) -> list[Case]:
    chosen, found = pattern(side, share), []
    own = [timed(depth, chosen, learns) for learns in (False, True)]
    with by_warps():
        check(depth, side)
        warps = [timed(depth, chosen, learns)["lacis"] for learns in (False, True)]
    name = f"heads of {depth}, blocks of {side}, {1 - share:.0%} zeros"
    alone, both = ({"lacis": mine, "sm_90a": of.pop("lacis")} | of for mine, of in zip(warps, own))
    backward = {peer: both[peer] - alone[peer] for peer in both}
    for what, times in (("forward", alone), ("backward", backward)):
        found.append(Case(f"{what}, {name}", times, "≥ 0.55 × sm_90a"))
    return found


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    return [found for each in CASES for found in case(*each)]

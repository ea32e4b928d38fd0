# SPDX-License-Identifier: Apache-2.0
"""Block rows of very different lengths on tensor cores, beside a random pattern with as many blocks."""

from __future__ import annotations

import itertools

import lacis
import torch

from .measure import Case, measure
from .tile_training import three_products

TITLE = "Uneven patterns in blocks of 64 on tensor cores, beside random ones with as many blocks, 8192², bf16"
SIZE, BLOCK = 8192, 64
COUNT = SIZE // BLOCK


def power_law(total: int) -> torch.Tensor:
    """The n-th row has about 1 / sqrt(n) of the blocks of the first, none more than there are."""
    weights = torch.arange(1, COUNT + 1, device="cuda").rsqrt()
    for _ in range(8):  # what is cut off goes to the others
        lengths = (weights * total / weights.sum()).clamp(max=COUNT)
        weights *= total / lengths.sum()
    return lengths.round().long()[torch.randperm(COUNT, device="cuda")]


def half_empty(total: int) -> torch.Tensor:
    lengths = torch.zeros(COUNT, dtype=torch.long, device="cuda")
    lengths[torch.randperm(COUNT, device="cuda")[: COUNT // 2]] = min(2 * total // COUNT, COUNT)
    return lengths


def one_full(total: int) -> torch.Tensor:
    lengths = torch.full((COUNT,), (total - COUNT) // (COUNT - 1), device="cuda")
    lengths[COUNT // 3] = COUNT
    return lengths


PATTERNS = {"power law": power_law, "half of the rows empty": half_empty, "one full row": one_full}


def pack(mask: torch.Tensor):
    weight = torch.randn(SIZE, SIZE, device="cuda") * mask.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
    return lacis.pack(weight.bfloat16(), lacis.Bsr(BLOCK, BLOCK))


def packed_pair(pattern: str, sparsity: float):
    """A weight whose rows have the lengths of the pattern, and one with as many blocks anywhere."""
    order = torch.rand(COUNT, COUNT, device="cuda")
    mask = order.argsort(1).argsort(1) < PATTERNS[pattern](round(COUNT**2 * (1 - sparsity)))[:, None]
    anywhere = order.flatten().argsort().argsort().view_as(order) < mask.sum()
    return pack(mask), pack(anywhere)


def cases(pattern: str, sparsity: float, tokens: int) -> list[Case]:
    x, dy = (torch.randn(tokens, SIZE, device="cuda").bfloat16() for _ in range(2))
    with torch.no_grad():
        uneven, anywhere = (three_products(packed, x, dy) for packed in packed_pair(pattern, sparsity))
        found = []
        for name in uneven:
            times = measure({"lacis": uneven[name], "random": anywhere[name]}, "cuda", rounds=20, flush=True)
            found.append(Case(f"{pattern}, {sparsity:.0%} zeros, {tokens} tokens, {name}", times))
    return found


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    return [case for each in itertools.product(PATTERNS, (0.75, 0.9), (8192, 1024, 32)) for case in cases(*each)]

# SPDX-License-Identifier: Apache-2.0
"""What follows the product of a layer, fused into the default schedule's kernel, beside the product alone."""

from __future__ import annotations

import itertools

import lacis
import torch
import torch.nn.functional as F

from .measure import Case, measure
from .tile_schedules import MUST, SPARSITIES, blocked

TITLE = "Block-sparse forward with what follows it, 8192×8192, 8192 tokens, bf16"
SIZE = 8192
ACTIVATIONS = {None: lambda y: y, "relu": F.relu, "gelu": F.gelu, "silu": F.silu}


def case(block: int, sparsity: float, name: str | None) -> Case:
    weight, x = blocked(SIZE, block, sparsity), torch.randn(SIZE, SIZE, device="cuda").bfloat16()
    bias, packed = torch.randn(SIZE, device="cuda").bfloat16(), lacis.pack(weight, lacis.Bsr(block, block))
    after = lacis.Epilogue(bias=bias, bias_axis="i", activation=name)
    fused, alone = (lacis.compile("ij,bj->bi", packed, x, epilogue=epilogue) for epilogue in (after, None))
    contenders = {
        "lacis": lambda: fused(packed, x),
        "product alone": lambda: alone(packed, x),
        "torch dense": lambda: ACTIVATIONS[name](F.linear(x, weight, bias)),
    }
    with torch.no_grad():
        times = measure(contenders, "cuda", rounds=20, flush=True)
    must = "≥ 0.97 of the product" if name == "gelu" else ""
    return Case(f"block {block}, {sparsity:.0%} zeros, bias" + (f" and {name}" if name else ""), times, must)


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    return [case(*each) for each in itertools.product(MUST, SPARSITIES, ACTIVATIONS)]

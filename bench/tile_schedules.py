# SPDX-License-Identifier: Apache-2.0
"""Tensor cores by the default schedule: forward products with stored blocks, beside cuBLAS and torch's BSR."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure

TITLE = "Block-sparse forward by the default schedule, 8192 tokens, bf16"
# What products of 8192² must be, in times of cuBLAS's, at each sparsity.
SPARSITIES = (0.5, 0.75, 0.9)
MUST = {
    256: (1.75, 3.35, 7.0),
    128: (1.75, 3.35, 7.0),
    64: (1.55, 2.7, 5.9),
    32: (1.25, 1.95, 3.0),
    16: (1.03, 1.42, 2.2),
}
MUST_DENSE = 0.93


def sides(block: int | tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of a block, which is square where one number is given."""
    return (block, block) if isinstance(block, int) else block


def blocked(size: int, block: int | tuple[int, int], sparsity: float) -> torch.Tensor:
    """A random bf16 matrix on the GPU with whole blocks of zeros."""
    rows, columns = sides(block)
    grid = torch.rand(size // rows, size // columns, device="cuda") >= sparsity
    mask = grid.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    return (torch.randn(size, size, device="cuda") * mask).bfloat16()


def stages(kernel, capacity: int, count: int):
    """The kernel's steps with another room for tiles in a stage, and another number of stages."""
    change = {
        "regroup": lambda step: lacis.steps.Regroup(step.operand, step.layout, capacity),
        "pipeline": lambda step: lacis.steps.Pipeline(step.loop, count),
    }
    return [change.get(step.mnemonic, lambda step: step)(step) for step in kernel.steps]


def case(block: int, sparsity: float, size: int, tokens: int = 8192) -> Case:
    weight, x = blocked(size, block, sparsity), torch.randn(tokens, size, device="cuda").bfloat16()
    packed = lacis.pack(weight, lacis.Bsr(block, block))
    kernel = lacis.compile("ij,bj->bi", packed, x)
    older = lacis.compile("ij,bj->bi", packed, x, target="cuda:sm_90")  # by cp.async and mma.sync, as from sm_80 on
    contenders = {"lacis": lambda: kernel(packed, x), "lacis, sm_90": lambda: older(packed, x)}
    contenders["torch dense"] = lambda: torch.nn.functional.linear(x, weight)
    if 16 <= block <= 128:  # torch's has no shared memory for larger ones
        bsr = weight.to_sparse_bsr((block, block))
        contenders["torch BSR"] = lambda: torch.nn.functional.linear(x, bsr)
    others = [(12, 5), (16, 4), (24, 3)] if block < 64 else []
    for capacity, count in others:
        other = lacis.compile("ij,bj->bi", packed, x, steps=stages(kernel, capacity, count))
        contenders[f"{capacity} tiles, {count} stages"] = lambda other=other: other(packed, x)
    with torch.no_grad():  # torch's BSR refuses inference tensors
        times = measure(contenders, "cuda", rounds=20, flush=True)
    must = f"≥ {MUST[block][SPARSITIES.index(sparsity)]}" if size == 8192 else ""
    return Case(f"{size}², block {block}, {sparsity:.0%} zeros", times, must)


def dense(size: int, tokens: int = 8192) -> Case:
    """The weight in the format `Dense`, through the same path."""
    weight, x = (torch.randn(n, size, device="cuda").bfloat16() for n in (size, tokens))
    packed = lacis.pack(weight, lacis.Dense)
    kernel = lacis.compile("ij,bj->bi", packed, x)
    contenders = {"lacis": lambda: kernel(packed, x), "torch dense": lambda: torch.nn.functional.linear(x, weight)}
    with torch.no_grad():
        return Case(f"{size}², Dense", measure(contenders, "cuda", rounds=20, flush=True), f"≥ {MUST_DENSE}")


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    return [dense(8192)] + [case(b, s, n) for n in (8192, 4096) for b in MUST for s in SPARSITIES]

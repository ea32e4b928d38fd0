# SPDX-License-Identifier: Apache-2.0
"""Stored blocks on tensor cores in other orders of the axes, and of a batch, beside the order of a layer."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure
from .tile_schedules import blocked

TITLE = "Orders of the axes and batches on tensor cores, 75 % zeros, 8192 tokens, bf16, beside the order of a layer"
PRODUCTS = ("ij,jk->ik", "ij,kj->ik", "ij,jk->ki")
BATCHES = ("ij,hjb->hib", "ij,hbj->hbi", "ij,hjb->hbi")


def product(expression: str, block: int, size: int, tokens: int) -> Case:
    """The subject is `expression`; its peers are "ij,kj->ki", as layers have it, and torch's dense product."""
    packed = lacis.pack(blocked(size, block, 0.75), lacis.Bsr(block, block))
    dense, sizes = packed.to_dense(), {"j": size, "k": tokens}
    contenders = {}
    for name, statement in (("lacis", expression), ("as layers", "ij,kj->ki")):
        x = torch.randn([sizes[letter] for letter in statement[3:5]], device="cuda").bfloat16()
        kernel = lacis.compile(statement, packed, x)
        contenders[name] = lambda kernel=kernel, x=x: kernel(packed, x)
    x = torch.randn([sizes[letter] for letter in expression[3:5]], device="cuda").bfloat16()
    contenders["torch dense"] = lambda: torch.einsum(expression, dense, x)
    with torch.no_grad():
        return Case(
            f"{expression}, {size}², block {block}", measure(contenders, "cuda", rounds=20, flush=True), "≥ 0.95"
        )


def scores(block: int, depth: int, size: int = 8192) -> Case:
    """Scores of attention: rows of both factors lie along the contraction. The peer is the kernel of CUDA cores."""
    q, k = (torch.randn(size, depth, device="cuda").bfloat16() for _ in range(2))
    return beside_cuda_cores("ij,ik,jk->ij", block, q, k, f"{size}², depth {depth}")


def heads(block: int, count: int, size: int = 4096, depth: int = 64) -> Case:
    """Scores of several heads that share a pattern."""
    q, k = (torch.randn(count, size, depth, device="cuda").bfloat16() for _ in range(2))
    return beside_cuda_cores("ij,hid,hjd->hij", block, q, k, f"{count} heads of {size}², depth {depth}")


def beside_cuda_cores(said: str, block: int, q: torch.Tensor, k: torch.Tensor, what: str) -> Case:
    """A sampled product of rows along the contraction, on tiles and by the kernel of CUDA cores."""
    pattern = lacis.pack(blocked(q.shape[-2], block, 0.75), lacis.Bsr(block, block)).pattern
    tiles, loops = lacis.compile(said, pattern, q, k), lacis.compile(said, pattern, q, k, strict=True)
    contenders = {
        "lacis": lambda: tiles(pattern, q, k),
        "CUDA cores": lambda: loops(pattern, q, k),
        "torch dense": lambda: q @ k.mT,
    }
    with torch.no_grad():
        name = f"{said} beside CUDA cores, {what}, block {block}"
        return Case(name, measure(contenders, "cuda", rounds=20, flush=True), "≥ 3")


def batch(expression: str, block: int, size: int, matrices: int, tokens: int) -> Case:
    """The peers are one matrix of as many tokens, as layers have it, and torch's dense product of the batch."""
    packed = lacis.pack(blocked(size, block, 0.75), lacis.Bsr(block, block))
    dense, sizes = packed.to_dense(), {"j": size, "h": matrices, "b": tokens}
    x = torch.randn([sizes[letter] for letter in expression[3:6]], device="cuda").bfloat16()
    one = torch.randn(matrices * tokens, size, device="cuda").bfloat16()
    kernel, layer = lacis.compile(expression, packed, x), lacis.compile("ij,bj->bi", packed, one)
    contenders = {
        "lacis": lambda: kernel(packed, x),
        "as layers": lambda: layer(packed, one),
        "torch dense": lambda: torch.einsum(expression, dense, x),
    }
    with torch.no_grad():
        name = f"{expression}, {size}², {matrices} x {tokens} tokens, block {block}"
        return Case(name, measure(contenders, "cuda", rounds=20, flush=True), "≥ 0.95")


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    found = [product(e, block, size, 8192) for size in (8192, 4096) for block in (128, 64, 32, 16) for e in PRODUCTS]
    found += [scores(block, depth) for block in (64, 128) for depth in (64, 128)]
    found += [batch(e, block, 4096, 16, 512) for block in (128, 64, 32, 16) for e in BATCHES]
    return found + [heads(block, 8) for block in (64, 128)]

# SPDX-License-Identifier: Apache-2.0
"""Stored blocks on tensor cores of other shapes and sizes, in BlockedEll and in float16, by the default schedules."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure
from .tile_schedules import SPARSITIES, blocked
from .tile_training import beside_cublas, products

TITLE = "Tensor cores at other shapes and sizes, in BlockedEll and in float16, by the default schedules"
# What kernels by hand reached, in times of cuBLAS, at each sparsity: by size and tokens, product and block.
BY_HAND = {
    (8192, 4096): {
        "forward": {128: (1.89, 3.59, 7.25), 64: (1.56, 2.79, 6.18), 32: (1.27, 1.99, 3.17), 16: (1.06, 1.49, 2.27)},
    },
    (4096, 4096): {
        "forward": {128: (1.91, 3.49, 5.07), 64: (1.52, 2.58, 4.94), 32: (1.19, 1.82, 2.81), 16: (0.99, 1.40, 2.10)},
    },
    (4096, 8192): {
        "forward": {128: (1.96, 3.50, 6.17), 64: (1.52, 2.69, 5.44), 32: (1.22, 1.91, 3.06), 16: (1.02, 1.46, 2.14)},
        "gradient of the input": {128: (1.96, 3.47, 6.02), 64: (1.51, 2.54, 4.86)},
        "gradient of the values": {
            128: (1.80, 3.45, 3.91),
            64: (1.00, 1.75, 3.36),
            32: (0.87, 1.42, 1.63),
            16: (0.65, 1.11, 1.42),
        },
    },
}
SHARE = 0.88  # of them that must be reached
# With few tiles of tokens: blocks of 64 at 90 %, 4096².
FEW_TILES = {512: 1.5, 1024: 2.4}


def sizes() -> list[Case]:
    found = []
    for (size, tokens), listed in BY_HAND.items():
        for block in (128, 64, 32, 16):
            for n, sparsity in enumerate(SPARSITIES):
                musts = {what: f"≥ {SHARE * row[block][n]:.2f}" for what, row in listed.items() if block in row}
                found += products(block, sparsity, size, musts, tokens)
    return found


def few_tiles() -> list[Case]:
    return [case for n, must in FEW_TILES.items() for case in products(64, 0.9, 4096, {"forward": f"≥ {must}"}, n)]


def shapes(size: int = 8192) -> list[Case]:
    """Blocks of eight, blocks that are not square, and a weight in the format `Dense`."""
    three = dict.fromkeys(("forward", "gradient of the input", "gradient of the values"), "")
    weight = torch.randn(size, size, device="cuda").bfloat16()
    found = beside_cublas("Dense", weight, lacis.pack(weight, lacis.Dense), {"gradient of the input": ""})
    for block in ((8, 8), (128, 64), (32, 16)):
        for sparsity in SPARSITIES:
            found += products(block, sparsity, size, three)
    return found


def even(size: int, block: int, sparsity: float) -> torch.Tensor:
    """A random bf16 matrix with the same number of stored blocks in every row."""
    count = size // block
    order = torch.rand(count, count, device="cuda").argsort(1)
    mask = (order < round(count * (1 - sparsity))).repeat_interleave(block, 0).repeat_interleave(block, 1)
    return (torch.randn(size, size, device="cuda") * mask).bfloat16()


def beside(name: str, own, other, tokens: int, size: int, must: str) -> Case:
    """The same product of two packed weights, the first of which is the subject."""
    x = torch.randn(tokens, size, device="cuda")
    contenders = {}
    for contender, packed in (("lacis", own), ("Bsr, bfloat16", other)):
        given = x.to(packed.dtype)
        kernel = lacis.compile("ij,bj->bi", packed, given)
        contenders[contender] = lambda kernel=kernel, packed=packed, given=given: kernel(packed, given)
    with torch.no_grad():
        return Case(name, measure(contenders, "cuda", rounds=20, flush=True), must)


def variants(size: int = 8192, tokens: int = 8192, sparsity: float = 0.75) -> list[Case]:
    found = []
    for block in (128, 64, 32, 16):
        words = f"{size}², {tokens} tokens, block {block}, {sparsity:.0%} zeros"
        weight = even(size, block, sparsity)
        plain, ell = (lacis.pack(weight, format(block, block)) for format in (lacis.Bsr, lacis.BlockedEll))
        found.append(beside(f"BlockedEll, {words}", ell, plain, tokens, size, "≥ 0.97"))
        plain = lacis.pack(blocked(size, block, sparsity), lacis.Bsr(block, block))
        found.append(beside(f"float16, {words}", plain.to(torch.float16), plain, tokens, size, "≥ 0.97"))
    return found


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    return variants() + shapes() + sizes() + few_tiles()

# SPDX-License-Identifier: Apache-2.0
"""One layer's training step by the default schedules: forward and both gradients, beside torch's dense layer."""

from __future__ import annotations

import copy
import itertools

import lacis
import torch

from .measure import Case, measure
from .tile_schedules import MUST as FORWARD
from .tile_schedules import SPARSITIES, blocked, sides

TITLE = "Training step of a block-sparse layer by the default schedules, 8192 tokens, bf16"
TOKENS = 8192
# What the step must be, in times of the dense layer's.
MUST = {(64, 0.9): 4.8, (256, 0.75): 3.1, (128, 0.75): 3.1, (32, 0.9): 2.2, (16, 0.9): 1.7}
# What the gradients must be at each sparsity, in times of cuBLAS's and in TFLOP/s of kept values.
GRAD_INPUT = {256: (1.75, 3.3, 7.0), 128: (1.75, 3.3, 7.0), 64: (1.4, 2.5, 5.1)} | {
    b: tuple(0.7 * x for x in FORWARD[b]) for b in (32, 16)
}
GRAD_VALUES = {
    256: (620, 570, 520),
    128: (620, 570, 520),
    64: (390, 370, 360),
    32: (330, 265, 175),
    16: (245, 215, 155),
}


def three_products(packed, x: torch.Tensor, dy: torch.Tensor) -> dict:
    """The forward product of a packed weight and both gradients, by the default schedules."""
    kernel = lacis.compile("ij,bj->bi", packed, x)
    gradient = lambda slot: kernel.family.gradient(slot).kernel
    return {
        "forward": lambda: kernel(packed, x),
        "gradient of the input": lambda: gradient("1").run([dy], packed, x.shape),
        "gradient of the values": lambda: gradient("values").run([x, dy], packed, packed.values.shape),
    }


def products(
    block: int | tuple[int, int], sparsity: float, size: int, musts: dict[str, str], tokens: int = TOKENS
) -> list[Case]:
    """The products that `musts` names, and says what they must be, each beside cuBLAS's of the dense weight."""
    weight = blocked(size, block, sparsity)
    shape = block if isinstance(block, int) else "×".join(map(str, block))
    packed = lacis.pack(weight, lacis.Bsr(*sides(block)))
    return beside_cublas(f"block {shape}, {sparsity:.0%} zeros", weight, packed, musts, tokens)


def beside_cublas(kind: str, weight: torch.Tensor, packed, musts: dict[str, str], tokens: int = TOKENS) -> list[Case]:
    """The same of a square weight that is packed already; `kind` is what the rows are called."""
    size = weight.shape[0]
    x, dy = (torch.randn(tokens, size, device="cuda").bfloat16() for _ in range(2))
    own = three_products(packed, x, dy)
    dense = {
        "forward": lambda: torch.nn.functional.linear(x, weight),
        "gradient of the input": lambda: dy @ weight,
        "gradient of the values": lambda: dy.T @ x,
    }
    cases, words = [], f"{size}², " + f"{tokens} tokens, " * (tokens != TOKENS) + kind
    with torch.no_grad():
        for name, must in musts.items():
            times = measure({"lacis": own[name], "torch dense": dense[name]}, "cuda", rounds=20, flush=True)
            teraflops = 2 * tokens * packed.values.numel() / times["lacis"] / 1e9
            cases.append(Case(f"{words}, {name} ({teraflops:.0f} TFLOP/s)", times, must))
    return cases


def layers(block: int, sparsity: float, size: int):
    """A sparse layer and the dense one that it came from, in bf16."""
    dense = torch.nn.Linear(size, size, bias=False, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        dense.weight.copy_(blocked(size, block, sparsity))
    model = torch.nn.Sequential(copy.deepcopy(dense))
    s = lacis.create_schedule(model)
    s["0.weight"].block(block, block).sparsify(lacis.BlockMagnitude(sparsity)).set_format(lacis.Bsr)
    return s.build(), dense


def step(layer, x: torch.Tensor, dy: torch.Tensor):
    """Forward and backward; gradients are made anew, as after `zero_grad()`."""

    def run():
        y = layer(x)
        torch.autograd.grad(y, [x, *layer.parameters()], dy)

    return run


def training(block: int, sparsity: float, size: int) -> Case:
    sparse, dense = layers(block, sparsity, size)
    x, dy = (torch.randn(TOKENS, size, device="cuda").bfloat16() for _ in range(2))
    x.requires_grad_()
    contenders = {"lacis": step(sparse, x, dy), "torch dense": step(dense, x, dy)}
    times = measure(contenders, "cuda", rounds=20, flush=True)
    must = MUST.get((block, sparsity)) if size == 8192 else None
    return Case(f"{size}², block {block}, {sparsity:.0%} zeros, training step", times, f"≥ {must}" if must else "")


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    shapes = list(itertools.product(FORWARD, SPARSITIES))
    cases = [training(b, s, n) for n in (8192, 4096) for b, s in (shapes if n == 8192 else MUST)]
    return cases + [case for b, s in shapes for case in products(b, s, 8192, musts(b, s))]


def musts(block: int, sparsity: float) -> dict[str, str]:
    """What the products of 8192² must be."""
    n = SPARSITIES.index(sparsity)
    return {
        "forward": f"≥ {FORWARD[block][n]:.2f}",
        "gradient of the input": f"≥ {GRAD_INPUT[block][n]:.2f}",
        "gradient of the values": f"≥ {GRAD_VALUES[block][n]} TFLOP/s",
    }

# SPDX-License-Identifier: Apache-2.0
"""The gradients' tile kernels (test/Tiles) on the GPU: 8192 tokens, square 8192, bf16, beside cuBLAS through torch."""

from __future__ import annotations

import dataclasses

import torch

from .measure import Case, measure
from .tiles import Layer, Layout, blocked

TITLE = "Block-sparse gradients on tensor cores, 8192×8192, 8192 tokens, bf16"
INPUT64 = Layout("grad-input64", 64, 256, (64, 64), 0.6)
INPUT128 = Layout("grad-input128", 128, 256, (128, 128), 0.6, step=128)
INPUT16 = Layout("grad-input16", 16, 128, (16, 64), 0.8)
WIDE = (("ring<5", "ring<3"), ("12x16x64", "24x16x64"), ("capacity = 12", "capacity = 24"))
INPUT16_WIDE = dataclasses.replace(INPUT16, edits=WIDE)
VALUES64 = Layout("grad-values64", 64, 0, (64, 64), 0.0)
VALUES128 = Layout("grad-values128", 128, 0, (128, 128), 0.0)


def _of_values(layout: Layout) -> bool:
    return layout.file.startswith("grad-values")


def expected(layer: Layer, dy: torch.Tensor, x: torch.Tensor | None, weight: torch.Tensor) -> torch.Tensor:
    """In float64: dx, or dw at the entries of the pattern and 0 at the padding of stored blocks."""
    if x is None:
        return dy.double() @ weight.double()
    dense = dy.double().T @ x.double()
    (i, j), valid = layer.packed.pattern.parts[""].coordinates()
    values = torch.zeros(len(valid), dtype=torch.float64, device=dy.device)
    values[valid] = dense[i[valid], j[valid]]
    return values.reshape(layer.packed.values.shape)


def check(layout: Layout, rows: int, columns: int, tokens: int, sparsity: float, repeats=3, entries=1.0) -> float:
    """The largest relative error of a few runs on poisoned memory, which must agree bit by bit.

    `entries` is the share of a stored block's places that hold an entry.
    """
    weight = blocked(rows, columns, layout.block, sparsity, layout.dtype)
    weight = weight * (torch.rand(weight.shape, device="cuda") < entries)
    dy = torch.randn(tokens, rows, device="cuda").to(layout.dtype)
    x = torch.randn(tokens, columns, device="cuda").to(layout.dtype) if _of_values(layout) else None
    layer, first = Layer(layout, weight, tokens), None
    want = expected(layer, dy, x, weight)
    for _ in range(repeats):
        poison = torch.full(want.shape, float("nan"), device="cuda", dtype=layout.dtype)
        del poison
        got = layer(dy) if x is None else layer(dy, x)
        first = got if first is None else first
        if not torch.equal(got, first):
            raise AssertionError(f"{layout.file}: two runs differ")
    error = ((first.double() - want).norm() / want.norm().clamp(min=1e-30)).item()
    if not error < 6e-3:
        raise AssertionError(f"{layout.file} {rows}x{columns}, {tokens} tokens, {sparsity}: error {error}")
    if first[want == 0].any() and _of_values(layout):
        raise AssertionError(f"{layout.file}: padding has a gradient")
    return error


def case(layout: Layout, sparsity: float, size: int = 8192, tokens: int = 8192) -> Case:
    weight = blocked(size, size, layout.block, sparsity, layout.dtype)
    dy, x = (torch.randn(tokens, size, device="cuda").to(layout.dtype) for _ in range(2))
    layer = Layer(layout, weight, tokens)
    if _of_values(layout):
        contenders = {"lacis": lambda: layer(dy, x), "torch dense": lambda: dy.T @ x}
    else:
        contenders = {"lacis": lambda: layer(dy), "torch dense": lambda: dy @ weight}
    with torch.inference_mode():
        times = measure(contenders, "cuda", rounds=20, flush=True)
    kept = layer.packed.values.numel()
    teraflops = 2 * tokens * kept / times["lacis"] / 1e9
    return Case(
        f"{layout.file}, block {layout.block}, {sparsity:.0%} zeros ({teraflops:.0f} TFLOP/s of kept values)", times
    )


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    layouts = [(layout, s) for layout in (INPUT128, INPUT64, VALUES128, VALUES64) for s in (0.5, 0.75, 0.9)]
    layouts += [(INPUT16_WIDE, 0.5), (INPUT16_WIDE, 0.75), (INPUT16, 0.9)]
    for layout, sparsity in layouts:
        check(layout, 2048, 1024, 1025, sparsity)
    return [case(layout, sparsity) for layout, sparsity in layouts]

# SPDX-License-Identifier: Apache-2.0
"""CSR products on the GPU, and CSR linear layers with token-major activations, beside cuSPARSE through torch."""

from __future__ import annotations

import lacis
import torch
from lacis import steps
from lacis.formats.widths import weight_format

from .measure import Case, measure, random_sparse

TITLE = "CSR on the GPU, random matrices, float32"

SHAPES = ((4096, 4096), (2048, 512), (3072, 768))
COLUMNS = (128, 1024, 8192)
TOKENS = (1, 8, 32, 48, 64, 96, 128, 192, 256, 512, 1024)  # on both sides of each nest's limit


def run() -> list[Case]:
    if not torch.cuda.is_available():
        return []
    products = [
        product(*shape, columns, sparsity)
        for shape in SHAPES
        for columns in COLUMNS
        for sparsity in (0.7, 0.8, 0.9, 0.95, 0.98)
    ]
    layers = [linear(*shape, tokens) for shape in SHAPES for tokens in COLUMNS]
    few = [linear(4096, 4096, tokens, "1× dense, no less than fewer tokens") for tokens in TOKENS]
    return products + layers + few + [gradient(*shape, 1024, sparsity) for shape in SHAPES for sparsity in (0.8, 0.9)]


def narrow(dense: torch.Tensor):
    """As a layer stores it: coordinates of 16 bits."""
    return lacis.pack(dense, weight_format(lacis.Csr(), dense.shape))


def product(rows: int, inner: int, columns: int, sparsity: float) -> Case:
    dense, x = random_sparse(rows, inner, sparsity, "cuda"), torch.randn(inner, columns, device="cuda")
    packed, csr = lacis.pack(dense, lacis.Csr), dense.to_sparse_csr()
    kernel = lacis.compile("ij,jk->ik", packed, x)
    torch.testing.assert_close(kernel(packed, x), csr @ x, rtol=1e-3, atol=1e-2)
    small = narrow(dense)
    of_small = lacis.compile("ij,jk->ik", small, x)
    contenders = {
        "lacis": lambda: kernel(packed, x),
        "lacis, crd=i16": lambda: of_small(small, x),
        "torch CSR (cuSPARSE)": lambda: csr @ x,
        "torch dense": lambda: dense @ x,
    }
    with torch.no_grad():
        times = measure(contenders, "cuda", rounds=20, flush=True)
    must = "1.5× dense, 1.7× cuSPARSE in the mean" if sparsity == 0.9 else "1.7× cuSPARSE in the mean"
    return Case(f"{rows}×{inner}, {columns} columns, {sparsity:.0%} zeros", times, must)


def linear(rows: int, inner: int, tokens: int, must: str = "1.7× F.linear on torch CSR") -> Case:
    dense, x = random_sparse(rows, inner, 0.9, "cuda"), torch.randn(tokens, inner, device="cuda")
    packed, csr = lacis.pack(dense, lacis.Csr), dense.to_sparse_csr()
    kernel = lacis.compile("ij,bj->bi", packed, x)
    torch.testing.assert_close(kernel(packed, x), x @ dense.T, rtol=1e-3, atol=1e-2)
    small = narrow(dense)
    of_small = lacis.compile("ij,bj->bi", small, x)
    contenders = {
        "lacis": lambda: kernel(packed, x),
        "lacis, crd=i16": lambda: of_small(small, x),
        "torch CSR (cuSPARSE)": lambda: torch.nn.functional.linear(x, csr),
        "torch dense": lambda: torch.nn.functional.linear(x, dense),
    }
    with torch.no_grad():
        times = measure(contenders, "cuda", rounds=20, flush=True)
    return Case(f"linear {rows}×{inner}, {tokens} tokens, 90% zeros", times, must)


def gradient(rows: int, inner: int, tokens: int, sparsity: float) -> Case:
    """The gradient of the values of a linear layer: a product sampled at its entries, with their rows listed or not."""
    dense = random_sparse(rows, inner, sparsity, "cuda")
    grad, x = torch.randn(tokens, rows, device="cuda"), torch.randn(tokens, inner, device="cuda")
    contenders = {}
    for width, packed in (("i32", lacis.pack(dense, lacis.Csr)), ("i16", narrow(dense))):
        for label, given in (("entries", []), ("rows", [steps.Walk("0", "i")])):
            kernel = lacis.compile("ij,bi,bj->ij", packed.pattern, grad, x, steps=given)
            want = packed.pattern.gather(grad.T @ x)
            torch.testing.assert_close(kernel(packed.pattern, grad, x).values, want, rtol=1e-3, atol=1e-1)
            call = lambda kernel=kernel, packed=packed: kernel(packed.pattern, grad, x)
            contenders["lacis" if not contenders else f"by {label}, crd={width}"] = call
    contenders["torch dense"] = lambda: grad.T @ x
    with torch.no_grad():
        times = measure(contenders, "cuda", rounds=20, flush=True)
    return Case(
        f"gradient of values {rows}×{inner}, {tokens} tokens, {sparsity:.0%} zeros", times, "by rows within 3 %"
    )

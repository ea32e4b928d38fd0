# SPDX-License-Identifier: Apache-2.0
"""Linear layers of BERT's shapes on the CPU: CSR at several sparsities and batches, 16x1 blocks, and both gradients."""

from __future__ import annotations

import itertools

import lacis
import torch
import torch.nn.functional as F

from .measure import Case, measure, random_sparse

TITLE = "Linear layers on the CPU, BERT shapes, float32"
SHAPES = ((768, 768), (3072, 768), (768, 3072))
TOKENS = (16, 32, 128, 512)
SPARSITIES = (0.7, 0.8, 0.9, 0.95, 0.98)


def run() -> list[Case]:
    found = [
        forward(*shape, tokens, sparsity) for shape, tokens, sparsity in itertools.product(SHAPES, TOKENS, SPARSITIES)
    ]
    found += [blocks(*shape, 128, 0.95) for shape in SHAPES]
    return found + [gradients(*shape, 128, 0.9) for shape in SHAPES]


def name(rows: int, columns: int, tokens: int, sparsity: float, format: str) -> str:
    return f"{format} {rows}×{columns}, {tokens} tokens, {sparsity:.0%} zeros"


def forward(rows: int, columns: int, tokens: int, sparsity: float) -> Case:
    """Beside torch CSR in the layout that suits it: `weight @ xT`, whose transposes are not counted."""
    dense, x = random_sparse(rows, columns, sparsity), torch.randn(tokens, columns)
    packed, csr, transposed = lacis.pack(dense, lacis.Csr), dense.to_sparse_csr(), x.T.contiguous()
    kernel = lacis.compile("ij,bj->bi", packed, x)
    torch.testing.assert_close(kernel(packed, x), x @ dense.T, rtol=1e-3, atol=1e-3)
    contenders = {"lacis": lambda: kernel(packed, x), "torch CSR @ xT": lambda: csr @ transposed}
    with torch.inference_mode():
        times = measure(contenders | {"torch dense": lambda: F.linear(x, dense)})
    musts = ["1.4× torch CSR in the mean, 0.95× at the least"]
    if (rows, columns, tokens, sparsity) == (3072, 768, 128, 0.9):
        musts.append("3× dense")
    return Case(name(rows, columns, tokens, sparsity, "CSR"), times, ", ".join(musts))


def blocks(rows: int, columns: int, tokens: int, sparsity: float) -> Case:
    mask = torch.rand(rows // 16, columns).repeat_interleave(16, 0) >= sparsity
    dense, x = torch.randn(rows, columns) * mask, torch.randn(tokens, columns)
    packed = lacis.pack(dense, lacis.Bsr(16, 1))
    kernel = lacis.compile("ij,bj->bi", packed, x)
    with torch.inference_mode():
        times = measure({"lacis": lambda: kernel(packed, x), "torch dense": lambda: F.linear(x, dense)})
    return Case(name(rows, columns, tokens, sparsity, "16×1 blocks"), times, "8× dense")


def gradients(rows: int, columns: int, tokens: int, sparsity: float) -> Case:
    """The slower of the two gradients beside the forward product."""
    dense, x = random_sparse(rows, columns, sparsity), torch.randn(tokens, columns, requires_grad=True)
    packed = lacis.pack(dense, lacis.Csr)
    values = packed.values.clone().requires_grad_()
    y = lacis.einsum("ij,bj->bi", packed.with_values(values), x)
    given = torch.randn_like(y)
    backward = lambda leaf: torch.autograd.grad(y, leaf, given, retain_graph=True)
    held = x.detach()
    alone = lambda: lacis.einsum("ij,bj->bi", packed, held)
    times = measure({"of the input": lambda: backward(x), "of the values": lambda: backward(values), "forward": alone})
    slower = max(times["of the input"], times["of the values"])
    return Case(
        name(rows, columns, tokens, sparsity, "slower gradient, CSR"),
        {"lacis": slower, "forward": times["forward"]},
        "0.5× forward",
    )

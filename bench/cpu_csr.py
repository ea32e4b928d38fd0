# SPDX-License-Identifier: Apache-2.0
"""The CSR linear layer on the CPU: 3072x768 at several sparsities, 128 tokens, float32."""

from __future__ import annotations

import lacis
import torch
import torch.nn.functional as F

from .measure import Case, measure, random_sparse

TITLE = "CSR linear on the CPU, 3072×768, 128 tokens, float32"


def run() -> list[Case]:
    return [case(sparsity) for sparsity in (0.7, 0.9, 0.95)]


def case(sparsity: float) -> Case:
    dense, x = random_sparse(3072, 768, sparsity), torch.randn(128, 768)
    packed, csr, transposed = lacis.pack(dense, lacis.Csr), dense.to_sparse_csr(), x.T.contiguous()
    kernel = lacis.compile("ij,bj->bi", packed, x)
    torch.testing.assert_close(kernel(packed, x), x @ dense.T, rtol=1e-3, atol=1e-3)
    with torch.inference_mode():
        times = measure(
            {
                "lacis": lambda: kernel(packed, x),
                "torch CSR @ xT": lambda: csr @ transposed,
                "torch dense": lambda: F.linear(x, dense),
            }
        )
    must = "no slower than 1.5× torch CSR" if sparsity == 0.9 else ""
    return Case(f"{sparsity:.0%} zeros", times, must)

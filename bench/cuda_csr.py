# SPDX-License-Identifier: Apache-2.0
"""The CSR product on the GPU: 4096x4096, 1024 columns, float32, beside cuSPARSE through torch."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure, random_sparse

TITLE = "CSR product on the GPU, 4096×4096, 1024 columns, float32"


def run() -> list[Case]:
    if not torch.cuda.is_available():
        return []
    return [case(sparsity) for sparsity in (0.7, 0.9, 0.98)]


def case(sparsity: float) -> Case:
    dense = random_sparse(4096, 4096, sparsity, "cuda")
    x = torch.randn(4096, 1024, device="cuda")
    packed, csr = lacis.pack(dense, lacis.Csr), dense.to_sparse_csr()
    kernel = lacis.compile("ij,jk->ik", packed, x)
    torch.testing.assert_close(kernel(packed, x), csr @ x, rtol=1e-3, atol=1e-2)
    with torch.inference_mode():
        times = measure(
            {
                "lacis": lambda: kernel(packed, x),
                "torch CSR (cuSPARSE)": lambda: csr @ x,
                "torch dense": lambda: dense @ x,
            },
            "cuda",
        )
    must = "no slower than 2× cuSPARSE" if sparsity == 0.9 else ""
    return Case(f"{sparsity:.0%} zeros", times, must)

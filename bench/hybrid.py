# SPDX-License-Identifier: Apache-2.0
"""A hybrid of two formats on a power-law graph, beside each of its formats alone."""

from __future__ import annotations

import lacis
import torch
from lacis import steps

from .graphs import NODES, power_law
from .measure import Case, measure

TITLE = "A hybrid on the GPU: short rows, and long rows apart; power-law graphs, 4 million edges, float32"

LONG = 256  # entries of a row that a block of its own takes
HYBRID = f"#lacis.sum<short = {lacis.Csr()} when nnz(i) lt {LONG}, long = {lacis.Dcsr()}>"


def run() -> list[Case]:
    if not torch.cuda.is_available():
        return []
    return [
        case(name, power_law(ordered), features)
        for name, ordered in (("power law, ordered", True), ("power law, shuffled", False))
        for features in (16, 32)
    ]


def case(name: str, edges: torch.Tensor, features: int) -> Case:
    """One matrix; every contender knows how many features there are."""
    index = torch.stack([edges // NODES, edges % NODES])
    values = torch.randn(edges.numel(), device="cuda")
    csr = torch.sparse_coo_tensor(index, values, (NODES, NODES), is_coalesced=True).to_sparse_csr()
    x = torch.randn(NODES, features, device="cuda")
    formats = {
        "lacis": lacis.Format.parse(HYBRID),
        "Csr alone": lacis.Csr,
        "Dcsr alone": lacis.Dcsr,
        "Coo alone": lacis.Coo,
    }
    contenders = {}
    with torch.inference_mode():
        for label, format in formats.items():
            packed = lacis.pack(csr, format)
            kernel = lacis.compile("ij,jk->ik", packed, x, steps=[steps.Specialize(k=features)])
            torch.testing.assert_close(kernel(packed, x), csr @ x, rtol=1e-3, atol=1e-2)
            contenders[label] = lambda kernel=kernel, packed=packed: kernel(packed, x)
        contenders["cuSPARSE"] = lambda: csr @ x
        times = measure(contenders, "cuda", rounds=20, flush=True)
    return Case(f"{name}, {features} features", times, "1.0× each format alone")

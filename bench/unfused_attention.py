# SPDX-License-Identifier: Apache-2.0
"""Attention statement by statement, which takes any format, beside the same three steps in torch.sparse, float32."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure, random_sparse

TITLE = "Attention as three statements, heads of 64, 4096 tokens, CSR with 95 % zeros, float32"
TOKENS, DEPTH, ZEROS = 4096, 64, 0.95


def statements(q, k, v, pattern) -> torch.Tensor:
    scores = lacis.einsum("ij,hid,hjd->hij", pattern, q * DEPTH**-0.5, k)
    return lacis.einsum("hij,hje->hie", lacis.softmax(scores, "j"), v)


def by_torch(q, k, v, ones: torch.Tensor) -> torch.Tensor:
    """Head by head. torch.sparse has a softmax of COO alone."""
    crow, col = ones.crow_indices(), ones.col_indices()
    rows = torch.arange(TOKENS, device=q.device).repeat_interleave(crow.diff())
    found = []
    for each, key, value in zip(q, k, v):
        scores = torch.sparse.sampled_addmm(ones, each, key.T, beta=0.0, alpha=DEPTH**-0.5)
        entries = torch.sparse_coo_tensor(torch.stack([rows, col]), scores.values(), ones.shape, is_coalesced=True)
        shares = torch.sparse.softmax(entries, 1).values()
        found.append(torch.sparse_csr_tensor(crow, col, shares, ones.shape, check_invariants=False) @ value)
    return torch.stack(found)


def case(device: str, heads: int) -> Case:
    mask = random_sparse(TOKENS, TOKENS, ZEROS, device) != 0
    pattern, ones = lacis.Pattern.from_mask(mask, lacis.Csr()), mask.float().to_sparse_csr()
    q, k, v = (torch.randn(heads, TOKENS, DEPTH, device=device) for _ in range(3))
    want = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in (q, k, v)), mask)
    contenders = {
        "lacis": lambda: statements(q, k, v, pattern),
        "torch.sparse": lambda: by_torch(q, k, v, ones),
    }
    for name, run in contenders.items():
        if not (run() - want).norm() <= 1e-4 * want.norm():
            raise AssertionError(f"unfused attention of {name}: not that of float64")
    return Case(f"{device}, {heads} heads", measure(contenders, device, flush=device == "cuda"), "≥ 1.5")


def run() -> list[Case]:
    if not torch.cuda.is_available():
        return []
    with torch.inference_mode():
        return [case("cuda", heads) for heads in (1, 8)]

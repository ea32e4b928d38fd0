# SPDX-License-Identifier: Apache-2.0
"""Linear layers for few tokens, as in decoding: one product after another on weights that no cache holds."""

from __future__ import annotations

import lacis
import torch
import torch.nn.functional as F

from .measure import Case, measure, random_sparse

TITLE = "Few tokens, 8192×8192, weights from memory, in a CUDA graph"

SIZE, TOKENS, COLD = 8192, (1, 4, 8, 32), 256 << 20
BYTES_PER_MICROSECOND = 3.4e6


def run() -> list[Case]:
    if not torch.cuda.is_available():
        return []
    with torch.no_grad():
        scalars = [case(f"CSR {dtype}", scalar(p, dtype), t) for dtype, p in SCALARS for t in TOKENS]
        return scalars + [
            case(f"block {block}", blocks(block, p), t)
            for block in (16, 32, 64)
            for p in (0.5, 0.75, 0.9)
            for t in TOKENS
        ]


SCALARS = ((torch.float32, 0.9), (torch.bfloat16, 0.9), (torch.bfloat16, 0.5))


def scalar(sparsity: float, dtype):
    return random_sparse(SIZE, SIZE, sparsity, "cuda", dtype), lacis.Csr, lambda dense: dense.to_sparse_csr(), sparsity


def blocks(block: int, sparsity: float):
    grid = torch.rand(SIZE // block, SIZE // block, device="cuda") >= sparsity
    mask = grid.repeat_interleave(block, 0).repeat_interleave(block, 1)
    dense = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) * mask
    return dense, lacis.Bsr(block, block), lambda dense: dense.to_sparse_bsr((block, block)), sparsity


def case(name: str, problem, tokens: int) -> Case:
    dense, format, peer, sparsity = problem
    x = torch.randn(tokens, SIZE, device="cuda", dtype=dense.dtype)
    packed = lacis.pack(dense, format)
    kernel = lacis.compile("ij,bj->bi", packed, x)
    expected = x.double() @ dense.double().T
    error = (kernel(packed, x).double() - expected).abs().max() / expected.abs().max()
    assert error < 0.02, f"{name}, {tokens} tokens: error {error}"
    runs = {"lacis": cold(lambda w: kernel(w, x), packed, packed.nbytes)}
    runs["torch dense"] = cold(lambda w: F.linear(x, w), dense, dense.nbytes)
    replays = {name: graph.replay for name, (graph, _) in runs.items()}
    times = {name: ms * 1e3 / len(runs[name][1]) for name, ms in measure(replays, "cuda", rounds=20).items()}
    times |= peers(lambda sparse: F.linear(x, sparse), peer(dense))
    times["kept bytes"] = kept_bytes(packed) / BYTES_PER_MICROSECOND
    must = f"{3 + times['kept bytes']:.1f} µs, dense" if "block" in name else ""
    return Case(f"{name}, {sparsity:.0%} zeros, {tokens} tokens", times, must, unit="µs")


def kept_bytes(packed) -> int:
    """Of the values and of the pattern; which of the values are padding is none of it."""
    valid = packed.pattern.part().valid
    return packed.nbytes - (0 if valid is None else valid.nbytes)


def peers(function, sparse) -> dict[str, float]:
    try:
        return {"torch sparse": measure({"": lambda: function(sparse)}, "cuda", rounds=20, flush=True)[""] * 1e3}
    except RuntimeError:  # torch has no such product
        return {}


def cold(function, weight, size: int) -> tuple[torch.cuda.CUDAGraph, list]:
    """A graph of products on copies of the weight that fill the cache several times; the copies and their results."""
    weights = [weight] + [copied(weight) for _ in range(-(-COLD // size))]
    for each in weights:
        function(each)  # what is known of an operand is found in its first call
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        return graph, [(each, function(each)) for each in weights]


def copied(weight):
    if isinstance(weight, torch.Tensor):
        return weight.clone()
    return lacis.pack(weight.to_dense(), weight.format)

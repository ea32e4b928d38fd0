# SPDX-License-Identifier: Apache-2.0
"""A sum of stored blocks and of entries anywhere, the blocks on tensor cores, beside torch's dense product."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure

TITLE = "A sum of blocks, on tensor cores, and of single entries, summed up before; 8192², 8192 tokens, bf16"
SIZE = TOKENS = 8192
CASES = [(block, sparsity, share) for block in (64, 32) for sparsity in (0.75, 0.9) for share in (0.0005, 0.005)]


def hybrid(block: int, rest: type[lacis.Format] = lacis.Csr) -> lacis.Format:
    """Blocks of which a quarter or more is there, and what is left in `rest`."""
    rule = f"nnz(i floordiv {block}, j floordiv {block}) ge {block * block // 4}"
    return lacis.Format.parse(f"#lacis.sum<blocks = {lacis.Bsr(block, block)} when {rule}, rest = {rest()}>")


def scattered(rows, columns, block, sparsity, share, dtype=torch.bfloat16, device="cuda") -> torch.Tensor:
    """A random matrix with whole blocks of zeros, and entries anywhere: `share` of its places."""
    grid = torch.rand(-(-rows // block), -(-columns // block), device=device) >= sparsity
    kept = grid.repeat_interleave(block, 0).repeat_interleave(block, 1)[:rows, :columns]
    kept = kept | (torch.rand(rows, columns, device=device) < share)
    return (torch.randn(rows, columns, device=device) * kept).to(dtype)


def case(block: int, sparsity: float, share: float) -> Case:
    weight = scattered(SIZE, SIZE, block, sparsity, share)
    x = torch.randn(TOKENS, SIZE, device="cuda").bfloat16()
    packed = lacis.pack(weight, hybrid(block))
    with torch.inference_mode():
        kernel = lacis.compile("ij,bj->bi", packed, x)
        if "lacis.load_acc" not in kernel.asm["tiles"]:
            raise AssertionError("the blocks do not run on tensor cores")
        got, want = kernel(packed, x).double(), x.double() @ weight.double().T
        if not (got - want).norm() < 6e-3 * want.norm():
            raise AssertionError(f"error {(got - want).norm() / want.norm()}")
        contenders = {
            "lacis": lambda: kernel(packed, x),
            "torch dense": lambda: torch.nn.functional.linear(x, weight),
        }
        times = measure(contenders, "cuda", rounds=20, flush=True)
    return Case(f"blocks of {block}, {sparsity:.0%} zeros, {share:.2%} entries elsewhere", times)


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 0):
        return []
    return [case(*each) for each in CASES]

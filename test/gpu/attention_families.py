# SPDX-License-Identifier: Apache-2.0
"""Every family of attention's kernels on small problems; `python test/gpu/attention_families.py` runs each once."""

from __future__ import annotations

import sys

import torch

import lacis

# What its kernels are called: of the output, of the gradients by rows and by columns, and what stands beside them.
NAMES = ("attention", "rows", "columns", "row_products", "merge_parts", "block_lists")
DEPTHS = (64, 128)
# Racecheck reports the reads of a line that several bulk copies bring in parts, all of which one barrier waits for.
# Lines that one copy brings, by the same barrier, it does not report; a thousand runs of these answer the same bits.
NOT_FOLLOWED = {"racecheck": ("causal 16, 128", "causal 32, 128")}


def operands(queries: int, keys: int, depth: int) -> list[torch.Tensor]:
    """Four heads of queries, two of keys."""
    shapes = ((4, queries), (2, keys), (2, keys))
    return [torch.randn(2, heads, n, depth, device="cuda").bfloat16().requires_grad_() for heads, n in shapes]


def rules() -> dict[str, tuple[lacis.PatternRule, dict]]:
    """What to attend by, and how."""
    found = {f"causal {side}": (lacis.Causal(block=side), {}) for side in (16, 32, 64, 128)}
    found["window"] = lacis.Local(90, block=64), {"score": lambda s, b, h, i, j: s - 0.1 * (h + 1) * (i - j).abs()}
    found["random blocks, dropout"] = lacis.BigBird(block=64), {"dropout": 0.2, "seed": 3}
    found["lists"] = lacis.TopKBlocks(2, block=64), {}
    return found


def names(tool: str = "") -> list[str]:
    found = [f"{name}, {depth}" for depth in DEPTHS for name in (*rules(), "few queries")]
    return [name for name in found if name not in NOT_FOLLOWED.get(tool, ())]


def main() -> None:
    """Both passes of each, and few queries over keys in parts; tails everywhere. Takes the tool that looks on."""
    chosen = names(*sys.argv[1:])
    for depth in DEPTHS:
        for name, (rule, how) in rules().items():
            if f"{name}, {depth}" not in chosen:
                continue
            output = lacis.attention(*operands(200, 332, depth), rule, **how)
            output.sum().backward()
            assert output.isfinite().all(), name
            print(f"{name}, {depth}", flush=True)
        few = [x.detach() for x in operands(1, 4096, depth)]
        assert lacis.attention(*few, torch.ones(1, 1, 64, dtype=torch.bool)).isfinite().all()
        print(f"few queries, {depth}", flush=True)


if __name__ == "__main__":
    main()

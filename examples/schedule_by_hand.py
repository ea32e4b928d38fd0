# SPDX-License-Identifier: Apache-2.0
"""Improves one kernel by hand: the default schedule of a linear layer, then steps for the one shape that it runs on.

    python examples/schedule_by_hand.py [--device cpu|cuda|all] [--rounds 30]

Prints both schedules, checks that they give the same numbers, and measures them in turns.
"""

from __future__ import annotations

import argparse
import statistics
import time

import lacis
import torch
from lacis import steps

# What is known here and not to the compiler: the layer always sees this many tokens.
TOKENS = {"cpu": 8, "cuda": 64}
BY_HAND = {
    "cpu": [steps.Specialize(b=8), steps.Reorder("i", "b"), steps.Vectorize("b", 8), steps.Unroll("j", 8, 8)],
    "cuda": [steps.Specialize(b=64), steps.Unroll("j", 8)],
}


def problem(device: str, sparsity: float = 0.9):
    """A layer of 3072 x 768 whose weight keeps random entries, and the tokens that it sees."""
    torch.manual_seed(0)
    dense = torch.randn(3072, 768)
    packed = lacis.pack((dense * (torch.rand(dense.shape) > sparsity)).to(device), lacis.Csr)
    return packed, torch.randn(TOKENS[device], 768, device=device)


def measure(kernels: dict, operands, rounds: int) -> dict[str, float]:
    """Medians in microseconds; the kernels take turns, so that all see the same machine."""
    wait = torch.cuda.synchronize if operands[1].is_cuda else lambda: None
    times: dict[str, list[float]] = {name: [] for name in kernels}
    for _ in range(rounds):
        for name, kernel in kernels.items():
            kernel(*operands)
            wait()
            start = time.perf_counter()
            for _ in range(10):
                kernel(*operands)
            wait()
            times[name].append((time.perf_counter() - start) / 10 * 1e6)
    return {name: statistics.median(found) for name, found in times.items()}


@torch.no_grad()
def improve(device: str, rounds: int) -> None:
    operands = problem(device)
    expression = "ij,bj->bi"
    default = lacis.compile(expression, *operands)
    by_hand = lacis.compile(expression, *operands, steps=BY_HAND[device])
    print(f"{device}: y[b, i] = sum_j w[i, j] * x[b, j], w 3072 x 768 with 90 % zeros, {TOKENS[device]} tokens")
    print(f"\nthe default schedule:\n{default.steps}")
    print(f"\nby hand, {len(BY_HAND[device])} steps, and what completes them:\n{by_hand.steps}")
    torch.testing.assert_close(by_hand(*operands), default(*operands))
    found = measure({"default": default, "by hand": by_hand}, operands, rounds)
    print("\n" + ", ".join(f"{name} {time:.1f} us" for name, time in found.items()), end="")
    print(f": {found['default'] / found['by hand']:.2f} times as fast\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="all", choices=["cpu", "cuda", "all"])
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for device in devices if options.device == "all" else [options.device]:
        improve(device, options.rounds)


if __name__ == "__main__":
    main()

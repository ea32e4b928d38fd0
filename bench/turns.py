# SPDX-License-Identifier: Apache-2.0
"""Two environments in turns on one device: has a change of the compiler made a default kernel slower?

    python -m bench.turns OLD/bin/python NEW/bin/python [--only WORD] [--size 8192] [--device cuda]

Each interpreter has its own lacis. Both hold the same problem at a time and measure it by turns, old, new, new, old: a
median of 20 calls each, the second-level cache overwritten before each call. Fails where a problem is more than 3 %
slower, or all are more than 1 % in the geometric mean.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROUNDS, TURNS = 20, (0, 1, 1, 0)
WORST, MEAN = 1.03, 1.01
BLOCKS = [(128, 128), (64, 64), (32, 32), (16, 16), (8, 8), (128, 64), (32, 16)]
SLOTS = {"forward": "", "dx": "1", "dw": "values"}


def problems() -> dict[str, tuple]:
    """Slot, block and sparsity of each, by name; without a block the weight is dense."""
    found = {}
    for what, slot in SLOTS.items():
        for block in BLOCKS:
            for sparsity in (0.5, 0.75, 0.9):
                found[f"{what} {block[0]}x{block[1]} {sparsity:.0%}"] = slot, block, sparsity
        if what != "dw":
            found[f"{what} dense"] = slot, None, 0.0
    return found


# In each of the two environments:


def call_of(name: str, size: int, tokens: int, device: str):
    """The problem as a function without arguments; the same numbers in both environments."""
    import lacis
    import torch

    slot, block, sparsity = problems()[name]
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    weight, x, dy = (torch.randn(n, size, device=device).to(dtype) for n in (size, tokens, tokens))
    if block:
        kept = torch.rand(-(-size // block[0]), -(-size // block[1]), device=device) >= sparsity
        weight *= kept.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:size, :size]
    packed = lacis.pack(weight, lacis.Bsr(*block) if block else lacis.Dense())
    kernel = lacis.compile("ij,bj->bi", packed, x)
    if not slot:
        return lambda: kernel(packed, x)
    gradient = kernel.family.gradient(slot).kernel
    if slot == "1":
        return lambda: gradient.run([dy], packed, x.shape)
    return lambda: gradient.run([x, dy], packed, packed.values.shape)


def work() -> None:
    """Answers, line by line: a list of arguments makes a problem, a number measures it so often."""
    import torch

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from bench.measure import measure

    call, device = None, "cpu"
    for line in sys.stdin:
        asked = json.loads(line)
        with torch.no_grad():
            if isinstance(asked, list):
                call = None  # room for the next
                device, call = asked[3], call_of(*asked)
                call()
                answer = None
            else:
                answer = measure({"": call}, device, rounds=asked, flush=device == "cuda")[""]
        print("answer " + json.dumps(answer), flush=True)


# Outside of them:


class Environment:
    """A process of one interpreter that measures."""

    def __init__(self, python: str):
        command = [python, "-c", f"import runpy; runpy.run_path({__file__!r}, run_name='worker')"]
        folder = os.path.dirname(os.path.abspath(python))  # where no other lacis lies
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=folder)

    def ask(self, what) -> None:
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("answer "):
                return json.loads(line[len("answer ") :])
        raise SystemExit(f"{self.process.args[0]} ended: {self.process.wait()}")


def measure_in_turns(environments, given) -> list[float]:
    """The mean of each one's medians, in milliseconds; only one of them works at a time."""
    for each in environments:
        each.ask(given)
        each.answer()
    taken: list[list[float]] = [[], []]
    for turn in TURNS:
        environments[turn].ask(ROUNDS)
        taken[turn].append(environments[turn].answer())
    return [statistics.mean(times) for times in taken]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description=__doc__)
    parser.add_argument("pythons", nargs=2, metavar="PYTHON", help="the old environment's, then the new one's")
    parser.add_argument("--only", default="", help="problems whose names hold this")
    parser.add_argument("--size", type=int, default=8192, help="rows and columns of the weight")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    environments, ratios = [Environment(python) for python in given.pythons], []
    print("| case | old (ms) | new (ms) | new / old |\n|---|---|---|---|")
    for name in (name for name in problems() if given.only in name):
        old, new = measure_in_turns(environments, [name, given.size, given.tokens, given.device])
        ratios.append(new / old)
        print(f"| {name} | {old:.4f} | {new:.4f} | {new / old:.3f} |", flush=True)
    mean = statistics.geometric_mean(ratios)
    print(f"| geometric mean | | | {mean:.3f} |")
    sys.exit(max(ratios) > WORST or mean > MEAN)


if __name__ == "worker":
    work()
elif __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Two environments in turns on one device: has a change of the compiler made a row of a benchmark slower?

    python -m bench.turns OLD/bin/python NEW/bin/python tile_schedules tile_training [--most 3] [--runs 3]

Each interpreter has its own lacis. Both run the same benchmarks of this folder on the same numbers and stop at the same
measurement, which they take by turns: medians of 10 calls each of `lacis`, not of its peers. Each of the two follows
the other as often early as late (the sequence of Thue and Morse), for a card that grows hot is slower with every turn.
Of several runs the least time of a row counts, each in processes of its own: where a process has its tensors in memory
moves rows that wait for memory by a tenth, with the same code.
Fails where a row is more than 3 % slower, or all are more than 1 % in the geometric mean.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import traceback

ROUNDS, TURNS = 10, (0, 1, 1, 0, 1, 0, 0, 1)
WORST, MEAN = 1.03, 1.01


# In each of the two environments:


class Enough(Exception):
    """Ends a benchmark after as many measurements as were asked for."""


def say(what) -> None:
    print("answer " + json.dumps(what), flush=True)


class InTurns:
    """In place of `measure`, in every benchmark: takes `lacis` as often as the outside asks, until that asks for 0."""

    def __init__(self, measure, most: int | None):
        self.measure, self.most, self.count = measure, most, 0

    def __call__(self, contenders: dict, device="cpu", rounds: int = 30, warmup: int = 3, flush: bool = False) -> dict:
        if "lacis" not in contenders:
            return dict.fromkeys(contenders, 1.0)  # peers alone
        if self.count == self.most:
            raise Enough
        self.count += 1
        subject, taken = contenders["lacis"], []
        for _ in range(warmup):
            subject()
        say("ready")
        while rounds := json.loads(sys.stdin.readline()):
            taken.append(self.measure({"": subject}, device, rounds, 1, flush)[""])
            say(taken[-1])
        return dict.fromkeys(contenders, statistics.mean(taken))


def work(names: list[str], most: int | None) -> None:
    """Runs the benchmarks one by one. Says the names of the rows at the end of each, or why it ended before."""
    import torch

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    module = importlib.import_module("bench.measure")
    module.measure = turns = InTurns(module.measure, most)  # before the benchmarks are loaded, some of which use others
    for name in names:
        turns.count = 0
        torch.manual_seed(0)
        try:
            rows = [case.name for case in importlib.import_module(f"bench.{name}").run()]
        except Enough:
            rows = []
        except Exception:
            say({"failed": traceback.format_exc()})
            return
        say({"rows": rows})


# Outside of them:


class Environment:
    """A process of one interpreter that measures."""

    def __init__(self, python: str, names: list[str], most: int | None):
        code = f"import runpy; runpy.run_path({__file__!r}, run_name='worker')['work']({names!r}, {most!r})"
        python, pipe = os.path.abspath(python), subprocess.PIPE
        folder = os.path.dirname(python)  # where no other lacis lies
        self.process = subprocess.Popen([python, "-c", code], stdin=pipe, stdout=pipe, text=True, cwd=folder)

    def ask(self, rounds: int) -> None:
        self.process.stdin.write(f"{rounds}\n")
        self.process.stdin.flush()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("answer "):
                return json.loads(line[len("answer ") :])
        raise SystemExit(f"{self.process.args[0]} ended: {self.process.wait()}")


def measured(environments: list[Environment]) -> list[float]:
    """The mean of each one's medians, in milliseconds; only one of them works at a time."""
    taken: list[list[float]] = [[], []]
    for turn in TURNS:
        environments[turn].ask(ROUNDS)
        taken[turn].append(environments[turn].answer())
    for each in environments:
        each.ask(0)
    return [statistics.mean(times) for times in taken]


def rows_of(environments: list[Environment]) -> list[tuple[str, float, float]]:
    """Name and times of each row of the next benchmark."""
    times = []
    while (answers := [each.answer() for each in environments])[0] == answers[1] == "ready":
        times.append(measured(environments))
        print(len(times), *times[-1], file=sys.stderr)  # names come at the end, in the same order
    for each, answer in zip(environments, answers):
        if answer == "ready":
            raise SystemExit(f"{each.process.args[0]} measures more than the other one")
        if "failed" in answer:
            raise SystemExit(f"{each.process.args[0]}:\n{answer['failed']}")
    named = [each["rows"] for each in answers if len(each["rows"]) == len(times)]
    names = named[-1] if named else map(str, range(len(times)))
    return [(name, *each) for name, each in zip(names, times)]


def least(pythons: list[str], benchmarks: list[str], most: int | None, runs: int) -> dict[tuple[str, int], tuple]:
    """Name and least times of each row, by benchmark and number."""
    found: dict[tuple[str, int], tuple] = {}
    for _ in range(runs):
        environments = [Environment(python, benchmarks, most) for python in pythons]
        for benchmark in benchmarks:
            for number, (name, *times) in enumerate(rows_of(environments)):
                _, *known = found.get((benchmark, number), (name, *times))
                found[benchmark, number] = (name, *map(min, known, times))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description=__doc__)
    parser.add_argument("pythons", nargs=2, metavar="PYTHON", help="the old environment's, then the new one's")
    parser.add_argument("benchmarks", nargs="+", help="names as of `python -m bench`")
    parser.add_argument("--most", type=int, help="measurements of each benchmark; default: all")
    parser.add_argument("--runs", type=int, default=1, help="of each benchmark; default: 1")
    given = parser.parse_args()
    print("| benchmark | row | old (ms) | new (ms) | new / old |\n|---|---|---|---|---|")
    ratios = []
    for (benchmark, _), (name, old, new) in least(given.pythons, given.benchmarks, given.most, given.runs).items():
        ratios.append(new / old)
        print(f"| {benchmark} | {name} | {old:.4f} | {new:.4f} | {new / old:.3f} |")
    if not ratios:
        raise SystemExit("not measured: no GPU")
    mean = statistics.geometric_mean(ratios)
    print(f"| all | geometric mean | | | {mean:.3f} |")
    sys.exit(max(ratios) > WORST or mean > MEAN)


if __name__ == "__main__":
    main()

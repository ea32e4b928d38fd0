# SPDX-License-Identifier: Apache-2.0
"""Building the demo's 36 layers, with an empty and with a full cache; and a kernel after one step changed."""

from __future__ import annotations

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import lacis
import torch
from lacis import steps

from .measure import Case, random_sparse

TITLE = "Build of the demo's 36 layers on the CPU, and of a kernel with one step changed"
SCRIPT = """
import sys, time
sys.path.insert(0, {examples!r})
import lacis, sparse_bert
lacis.knobs.cache_dir = {cache!r}
model, _, _ = sparse_bert.load("cpu")
schedule = sparse_bert.make_schedule(model)
start = time.perf_counter()
schedule.build()
print((time.perf_counter() - start) * 1e3)
"""


def run() -> list[Case]:
    examples = str(pathlib.Path(__file__).resolve().parent.parent / "examples")
    with tempfile.TemporaryDirectory() as cache:
        script = SCRIPT.format(examples=examples, cache=cache)
        first, second = (
            float(
                subprocess.run(
                    [sys.executable, "-c", script], check=True, capture_output=True, text=True
                ).stdout.split()[-1]
            )
            for _ in range(2)
        )
    cases = [
        Case("empty cache", {"lacis": first}, "under 20 s on 2 cores"),
        Case("full cache", {"lacis": second}, "under 2 s"),
    ]
    for device, must in MUST.items():
        if device == "cpu" or torch.cuda.is_available():
            cases += changed(device, must)
    return cases


MUST = {"cpu": "under 50 ms", "cuda": "under 600 ms"}
ROUNDS = (3, 5, 6, 7, 9)  # of the loop over entries, to begin with others than the default's


def changed(device: str, must: str) -> list[Case]:
    """A CSR layer of 3072×768 and 16 tokens: its default schedule, and one by hand, with another `unroll` each time."""
    packed, x = lacis.pack(random_sparse(3072, 768, 0.9, device), lacis.Csr), torch.randn(16, 768, device=device)
    default = list(lacis.compile("ij,bj->bi", packed, x).steps)
    by_hand = [steps.Split("i", 32), steps.Unroll("j", 2)]
    cases = []
    with tempfile.TemporaryDirectory() as cache:
        lacis.knobs.cache_dir = cache
        for name, own in (("default", default), ("by hand", by_hand)):
            first, again = (compiled(own, packed, x) for _ in range(2))
            cases.append(Case(f"{device}, one step changed, {name}", {"lacis": first}, must))
            cases.append(Case(f"{device}, the same again, {name}", {"lacis": again}, "under 5 ms"))
        del lacis.knobs.cache_dir
    return cases


def compiled(own: list, packed, x) -> float:
    """The median of the milliseconds until the kernel is there."""
    times = []
    for rounds in ROUNDS:
        asked = [steps.Unroll("j", rounds) if isinstance(s, steps.Unroll) and s.loop == "j" else s for s in own]
        start = time.perf_counter()
        lacis.compile("ij,bj->bi", packed, x, steps=asked)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)

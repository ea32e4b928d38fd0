# SPDX-License-Identifier: Apache-2.0
"""Building the demo's 36 layers, with an empty and with a full cache of kernels."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

from .measure import Case

TITLE = "Build of the demo's 36 layers on the CPU"
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
    return [
        Case("empty cache", {"lacis": first}, "under 20 s on 2 cores"),
        Case("full cache", {"lacis": second}, "under 2 s"),
    ]

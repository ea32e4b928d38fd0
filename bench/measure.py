# SPDX-License-Identifier: Apache-2.0
"""Times functions in turns, so that all see the same machine in the same state."""

from __future__ import annotations

import collections
import dataclasses
import functools
import statistics
import time

import torch


@dataclasses.dataclass(frozen=True)
class Case:
    """One line of the table: what was measured, medians by contender in the table's unit, and what must hold."""

    name: str
    times: dict[str, float]
    must: str = ""
    unit: str = "ms"

    def ratio(self, peer: str, own: str = "lacis") -> float:
        """How many times faster than the peer."""
        return self.times[peer] / self.times[own]


def measure(contenders: dict, device="cpu", rounds: int = 30, warmup: int = 3, flush: bool = False) -> dict[str, float]:
    """Medians in milliseconds of functions without arguments.

    The order rotates from round to round, so that each runs after each other one's use of the caches. On the CPU the
    rounds take at least a second, so that a short call is not seen in one mood of the machine.

    On a GPU, `flush` overwrites the second-level cache twice before each call, 0.2 ms each, and lets the host run
    ahead: the time is the kernel's alone. A call of a sampled product took 0.24 ms of a slow host.
    """
    for function in contenders.values():
        for _ in range(warmup):
            function()
    on_cuda = torch.device(device).type == "cuda"
    timer, least = (_cuda_time, 0.0) if on_cuda else (_cpu_time, 1.0)
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    turns = collections.deque(contenders.items())
    start = time.perf_counter()
    while rounds > 0 or time.perf_counter() - start < least:
        rounds -= 1
        for name, function in turns:
            if flush:
                _flush()
            taken[name].append(timer(function))
        turns.rotate()
    return {name: statistics.median(times) for name, times in taken.items()}


def _cpu_time(function) -> float:
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


@functools.cache
def _scratch() -> torch.Tensor:
    with torch.inference_mode(False):  # one benchmark runs in it, the next one may not
        return torch.empty(1 << 30, dtype=torch.uint8, device="cuda")


def _flush() -> None:
    for _ in range(2):
        _scratch().fill_(1)


def _cuda_time(function) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    function()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def random_sparse(rows: int, columns: int, sparsity: float, device="cpu", dtype=torch.float32) -> torch.Tensor:
    """A fresh random matrix with this share of zeros."""
    dense = torch.randn(rows, columns, device=device)
    return (dense * (torch.rand(rows, columns, device=device) >= sparsity)).to(dtype)

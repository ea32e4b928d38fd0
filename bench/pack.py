# SPDX-License-Identifier: Apache-2.0
"""Packing a 4096x4096 float32 tensor at 90 %, on the GPU where there is one, and choosing entries of a large one."""

from __future__ import annotations

import pathlib
import time

import lacis
import torch
from lacis.formats import compose

from .measure import Case, measure, random_sparse

TITLE = "`lacis.pack` of 4096×4096 at 90 %, float32"
LARGE = 16384  # rows and columns: 1 GiB


def run() -> list[Case]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dense = random_sparse(4096, 4096, 0.9, device)
    formats = {
        "Csr": lacis.Csr(),
        "Csc": lacis.Csc(),
        "Dense": lacis.Dense(),
        "BlockedEll(16, 16)": lacis.BlockedEll(16, 16),
        "Bsr(64, 64)": lacis.Bsr(64, 64),
        "block(16, 16) Ell Coo": compose(2, [(16, 16)], [(lacis.Ell, [0, 1]), (lacis.Coo, [2, 3])]),
    }
    cases = [case(dense, name, format) for name, format in formats.items()]
    return cases + [conversion(dense, name, format) for name, format in formats.items()] + large(device)


def case(dense, name: str, format) -> Case:
    contenders = {"lacis": lambda: lacis.pack(dense, format), "torch to_sparse_csr": dense.to_sparse_csr}
    times = measure(contenders, dense.device, rounds=10)
    return Case(f"{name} on {dense.device.type}", times, "under 20 ms on CUDA")


def conversion(dense, name: str, format) -> Case:
    """From `Dcsr`, which has no layout of torch, to another format: a pattern's first time, and the gather after it."""
    packed = lacis.pack(dense, lacis.Dcsr)
    pattern = packed.pattern
    contenders = {
        "lacis": lambda: lacis.PackedTensor(lacis.Pattern(pattern.format, pattern.parts), packed.values_by_part).to(
            format
        ),
        "torch to_sparse_csr": dense.to_sparse_csr,
        "a second time": lambda: packed.to(format),
    }
    times = measure(contenders, dense.device, rounds=10)
    return Case(f"Dcsr to {name} on {dense.device.type}", times, "at most 4 × torch, 1.5 × to Csr")


def large(device: str) -> list[Case]:
    """One run each: the time, and the most memory that was held beside the weight, as a multiple of it."""
    weight = torch.randn(LARGE, LARGE, device=device)
    sparse = weight * lacis.Magnitude(0.9)(weight)
    jobs = {
        "Magnitude(0.9)": lambda: lacis.Magnitude(0.9)(weight),
        "Random(0.9)": lambda: lacis.Random(0.9)(weight),
        "pack, Csr": lambda: lacis.pack(sparse, lacis.Csr),
    }
    cases = []
    for name, job in jobs.items():
        before, start = held(device), time.perf_counter()
        result = job()
        peak = held(device, most=True) - before
        taken = time.perf_counter() - start
        del result
        must = f"under 4 s and 2 × the weight; it held {peak / weight.nbytes:.2f} × beside it"
        cases.append(Case(f"{name} of {LARGE}×{LARGE} on {device}", {"lacis": taken * 1e3}, must))
    return cases


def held(device: str, most: bool = False) -> int:
    """Bytes that are held now, or the most since the last time; 0 where the system does not say."""
    if device == "cuda":
        torch.cuda.synchronize()
        if most:
            return torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    status = pathlib.Path("/proc/self/status")
    if not status.exists():
        return 0
    if not most:
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from now on
    name = "VmHWM" if most else "VmRSS"
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(name)) * 1024

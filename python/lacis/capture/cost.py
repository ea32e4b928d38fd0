# SPDX-License-Identifier: Apache-2.0
"""What a product with a sparse matrix will take, from FLOP, bytes and measured rates; picks among schedules, and dense.

A rate of the H200 stands beside the measurement it comes from: tables of docs/benchmarks.md and docs/tensor-cores.md;
those of a CPU are in rates.py. What nobody measured has no prediction: None, never a guess.
"""

from __future__ import annotations

import bisect
import dataclasses
import math

import torch

from .rates import CpuRates, usual

HALVES = (torch.float16, torch.bfloat16)


@dataclasses.dataclass(frozen=True)
class Work:
    """`tokens` vectors times a matrix of `rows` x `columns` that stores `stored` values, in blocks of `block`.

    >>> Work(1000, 500, 128, 50_000, (1, 1), torch.float32).kept
    0.1
    """

    rows: int
    columns: int
    tokens: int
    stored: int
    block: tuple[int, int]
    dtype: torch.dtype

    @property
    def kept(self) -> float:
        return self.stored / max(self.rows * self.columns, 1)

    @property
    def flops(self) -> float:
        """Those of the dense product."""
        return 2.0 * self.rows * self.columns * self.tokens

    @property
    def moved(self) -> float:
        """Bytes of the vectors, in and out."""
        return (self.rows + self.columns) * self.tokens * float(self.dtype.itemsize)


# H200. The smallest time in the tables, 2048x512 CSR at 98 % with 128 columns: 8 us for a kernel that does nothing.
_LAUNCH = 8e-6
# CSR, float32, 8192 columns: 4096x4096 at 70 % 9.4e12, 3072x768 at 70/80/90 % 9.6, 9.4 and 9.0e12 FLOP/s.
_LOOPS = 9.2e12
# A linear layer transposes what goes in and out, two launches more. 2048x512 at 90 %, 8192 tokens: 0.292 - 0.189 ms for
# 84 MB read and written, 3072x768: 0.554 - 0.407 ms for 126 MB.
_TRANSPOSED = 1.65e12
# torch dense. float32, 4096x4096 with 1024 and 8192 columns: 0.678 and 5.46 ms; 2048x512 with 128: 17 us, 10 us above
# its FLOP. bf16, 8192x8192 with 8192 tokens: 1.30 ms, 4096x4096: 0.325 ms.
_DENSE = {torch.float32: 50e12, torch.float16: 845e12, torch.bfloat16: 845e12}
_DENSE_LAUNCH = 10e-6
_PROCESSORS = 132

# Tensor cores: milliseconds of 8192x8192 with 8192 tokens at 10, 25 and 50 % kept, by side of the block and, for small
# ones, by how many slabs a stage holds ("Block-sparse forward by the default schedule").
_KEPT = (0.1, 0.25, 0.5)
_TILES = {
    128: {None: (0.181, 0.404, 0.735)},
    64: {None: (0.221, 0.465, 0.835)},
    32: {12: (0.423, 0.738, 1.161), 16: (0.465, 0.656, 1.086), 24: (0.606, 0.752, 1.024)},
    16: {12: (0.536, 1.039, 1.567), 16: (0.556, 0.961, 1.343), 24: (0.708, 0.914, 1.229)},
}
_TILES_FLOPS = 2.0 * 8192**3
_USUAL_SLABS = 16
_PANEL = {True: (128, 256), False: (384, 128)}  # rows and tokens of a tile of the output, for large and small blocks


def predict(work: Work, target: str, path: str, cpu: CpuRates | None = None) -> float | None:
    """Milliseconds of a linear layer on `path`: `dense`, `loops`, `tiles`; None where nothing like it was measured.

    `cpu` has the rates of this CPU in the dtype of `work`; without them those of the table in rates.py hold.

    >>> work = Work(4096, 4096, 8192, 4096 * 4096 // 4, (64, 64), torch.bfloat16)
    >>> predict(work, "cuda:sm_90a", "tiles") < predict(work, "cuda:sm_90a", "dense") / 2
    True
    >>> predict(work, "cuda:sm_80", "tiles") is None
    True
    """
    if not work.flops:
        return None
    if target == "cpu":
        rates = cpu or usual(work.dtype, torch.get_num_threads())
        model = None if rates is None else {"loops": rates.loops, "dense": rates.dense}.get(path)
    else:
        model = _MODELS.get((target, path))
    seconds = None if model is None else model(work)
    return None if seconds is None else seconds * 1e3


def slabs(work: Work) -> int | None:
    """How many slabs a stage of the tensor-core kernel should hold; None where its blocks lie as they are, or usual."""
    timed = _TILES.get(min(work.block), {})
    if None in timed or work.dtype not in HALVES or not timed:
        return None
    kept = min(max(work.kept, _KEPT[0]), _KEPT[-1])  # where the curves are measured
    best = min(timed, key=lambda count: (_curve(timed[count], kept), abs(count - _USUAL_SLABS)))
    return None if best == _USUAL_SLABS else best


def _curve(times, kept: float) -> float:
    """Between the measured points, and straight on beyond them; never negative."""
    n = min(max(bisect.bisect(_KEPT, kept) - 1, 0), len(_KEPT) - 2)
    slope = (times[n + 1] - times[n]) / (_KEPT[n + 1] - _KEPT[n])
    return max(times[n] + slope * (kept - _KEPT[n]), 0.0)


def _idle(work: Work, large: bool) -> float:
    """By how much more than at the measured size the last round of tiles over the processors makes the work longer."""
    found = []
    for rows, tokens in ((work.rows, work.tokens), (8192, 8192)):
        tiles = math.ceil(rows / _PANEL[large][0]) * math.ceil(tokens / _PANEL[large][1])
        found.append(math.ceil(tiles / _PROCESSORS) * _PROCESSORS / tiles)
    return found[0] / found[1]


def _hopper_tiles(work: Work) -> float | None:
    timed = _TILES.get(min(work.block))
    if timed is None or work.dtype not in HALVES:
        return None
    count = None if None in timed else slabs(work) or _USUAL_SLABS
    scale = work.flops / _TILES_FLOPS * _idle(work, None in timed)
    return _LAUNCH + _curve(timed[count], work.kept) * 1e-3 * scale  # of 8192x8192 the launch is within the noise


def _hopper_loops(work: Work) -> float | None:
    if work.dtype not in _DENSE:
        return None
    return 2 * _LAUNCH + work.flops * work.kept / _LOOPS + 2 * work.moved / _TRANSPOSED


def _hopper_dense(work: Work) -> float | None:
    rate = _DENSE.get(work.dtype)
    if rate is None:
        return None
    return _DENSE_LAUNCH + work.flops / rate * (_idle(work, True) if work.dtype in HALVES else 1.0)


_MODELS = {
    ("cuda:sm_90a", "tiles"): _hopper_tiles,
    ("cuda:sm_90a", "loops"): _hopper_loops,
    ("cuda:sm_90a", "dense"): _hopper_dense,
}

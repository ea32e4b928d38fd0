# SPDX-License-Identifier: Apache-2.0
"""What a CPU takes for each thing that a linear layer does: rates from a table, or fitted to times measured on it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import torch

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
"""Dtypes that a CPU can be measured in."""

# What the caches of a processor of today keep for a few threads at least; the rest of a weight comes from memory.
_CACHED = 8 * 2**20
# torch's dense product runs other code for few tokens: float16, 1024x1024, takes 50 us a token up to 16, 115 from there
# to 128.
_FEW = 16


@dataclasses.dataclass(frozen=True)
class CpuRates:
    """Seconds that all threads together take for one of each thing, in one dtype.

    Of sparse layers: a call, a stored value (for all tokens), its product with one token, a byte of the vectors in and
    out. Of dense layers: a call, a weight, its product with each of the first 16 tokens, and with each further one, a
    byte of the weight that no cache keeps.
    """

    call: float
    entry: float
    product: float
    moved: float
    dense_call: float
    dense_weight: float
    dense_few: float
    dense_many: float
    dense_far: float

    def loops(self, work) -> float:
        """Seconds of a sparse layer; `work` is a `lacis.capture.cost.Work`."""
        return sum(map(_times, (self.call, self.entry, self.product, self.moved), _of_loops(work)))

    def dense(self, work) -> float:
        """Seconds of the dense layer."""
        rates = (self.dense_call, self.dense_weight, self.dense_few, self.dense_many, self.dense_far)
        return sum(map(_times, rates, _of_dense(work)))


def _times(rate: float, count: float) -> float:
    return rate * count


def _of_loops(work) -> tuple[float, ...]:
    return 1.0, float(work.stored), float(work.stored) * work.tokens, work.moved


def _of_dense(work) -> tuple[float, ...]:
    weights = float(work.rows) * work.columns
    few, far = min(work.tokens, _FEW), max(weights * work.dtype.itemsize - _CACHED, 0.0)
    return 1.0, weights, weights * few, weights * (work.tokens - few), far


# A thread, float32. 3072x768, 128 tokens: dense 4.0 ms; CSR at 70/90/95 % 2.58, 1.07 and 0.80 ms on 2 threads, of
# which 0.32 ms do not depend on the entries: 3.9 MB read and written for the transposes.
_CALL, _FLOPS, _BYTES, _DENSE_FLOPS = 8e-6, 40e9, 6e9, 77e9


def usual(dtype: torch.dtype, threads: int) -> CpuRates | None:
    """The rates of a CPU that was not measured; None for a dtype of which the tables have none.

    >>> usual(torch.float32, 2).product == usual(torch.float32, 1).product / 2, usual(torch.bfloat16, 2)
    (True, None)
    """
    if dtype != torch.float32:
        return None
    product, moved, dense = (2 / rate / threads for rate in (_FLOPS, _BYTES, _DENSE_FLOPS))
    return CpuRates(_CALL, 0.0, product, moved, _CALL, 0.0, dense, dense, 0.0)


def fitted(loops: Sequence[tuple], dense: Sequence[tuple]) -> CpuRates:
    """The rates that come nearest to measured times: pairs of a `Work` and seconds, of sparse and of dense layers.

    >>> from lacis.capture.cost import Work
    >>> works = [Work(n, n, tokens, n * n // 8, (1, 1), torch.float32) for n in (64, 512, 4096) for tokens in (1, 64)]
    >>> rates = CpuRates(1e-5, 1e-10, 2e-11, 1e-11, 5e-6, 1e-11, 3e-11, 2e-11, 1e-10)
    >>> again = fitted([(w, rates.loops(w)) for w in works], [(w, rates.dense(w)) for w in works])
    >>> abs(again.dense_far / rates.dense_far - 1) < 1e-6
    True
    """
    return CpuRates(
        *_solved([_of_loops(work) for work, _ in loops], [seconds for _, seconds in loops]),
        *_solved([_of_dense(work) for work, _ in dense], [seconds for _, seconds in dense]),
    )


def _solved(counts: Sequence[tuple], seconds: Sequence[float]) -> list[float]:
    """Rates of no less than zero that make the sum of squared relative errors least.

    They are plain least squares over some of the columns, so every choice of columns is tried: 31 of five.
    """
    measured = torch.tensor(seconds, dtype=torch.float64, device="cpu")
    table = torch.tensor(counts, dtype=torch.float64, device="cpu") / measured[:, None]
    scale = table.amax(0).clamp_min(torch.finfo(torch.float64).tiny)
    table, ones = table / scale, torch.ones_like(measured)
    best, least = torch.zeros_like(scale), float("inf")
    chosen = itertools.chain.from_iterable(itertools.combinations(range(len(scale)), n + 1) for n in range(len(scale)))
    for columns in map(list, chosen):
        found = torch.linalg.lstsq(table[:, columns], ones, driver="gelsd").solution
        error = float((table[:, columns] @ found - 1).square().sum())
        if bool((found >= 0).all()) and error < least:
            best, least = torch.zeros_like(scale), error
            best[columns] = found
    return (best / scale).tolist()

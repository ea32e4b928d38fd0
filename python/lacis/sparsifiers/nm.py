# SPDX-License-Identifier: Apache-2.0
"""Keeps n of every m neighbours."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..errors import DataError
from .base import Sparsifier
from .both_ways import best_of_four, greedy
from .choose import magnitude, slabs


class NM(Sparsifier):
    """Keep the `n` largest of every `m` neighbours along the last axis (2:4 is `NM(2, 4)`); of equal ones the first.

    A last group that is shorter keeps its `n` largest too. NaN counts as the largest.

    - `both=True`: at most `n` in each row *and* column of every `m`×`m` tile of a matrix, so that the transpose is n of
      m as well, which the gradient of the input walks (transposable masks, Hubara et al., 2021).
    - `rank`: `"abs"` compares magnitudes, `"value"` signed values, as torch's own semi-structured training does.
    - `search`, both ways: `"greedy"` takes elements from the largest downwards while there is room, as torch and
      xFormers do, which keeps 7 of 16 in some tiles; `"best"`, of 2:4 alone, takes the mask of 8 of 16 with the
      largest sum.

    >>> import torch
    >>> NM(2, 4)(torch.tensor([[1.0, -4.0, 3.0, 2.0]])).tolist()
    [[False, True, True, False]]
    >>> NM(2, 4, both=True)(torch.randn(8, 8)).sum(0).max() <= 4
    tensor(True)

    Raises `DataError` unless `0 < n <= m`, for other words, for `search="best"` of other than 2:4 both ways, and for
    what is no matrix where `both` is true.
    """

    def __init__(self, n: int, m: int, both: bool = False, rank: str = "abs", search: str = "greedy"):
        if not 0 < n <= m:
            raise DataError(f"n of m needs 0 < n <= m, not {n} of {m}")
        if rank not in ("abs", "value"):
            raise DataError(f"NM: rank is 'abs' or 'value', not {rank!r}")
        if search not in ("greedy", "best"):
            raise DataError(f"NM: search is 'greedy' or 'best', not {search!r}")
        if search == "best" and ((n, m) != (2, 4) or not both):
            raise DataError(f"NM: search='best' knows the masks of 2:4 both ways, not of {n}:{m}, both={both}")
        self.n, self.m, self.both, self.rank, self.search = n, m, both, rank, search

    @property
    def counts(self) -> bool:
        """One way the shape says how many are kept, both ways the values."""
        return not self.both

    def mask(self, tensor):
        if self.both and tensor.ndim != 2:
            raise DataError(f"NM: a mask both ways is that of a matrix, not of {list(tensor.shape)}")
        if tensor.numel() == 0:
            return torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
        height = self.m if self.both else 1
        if torch.compiler.is_compiling():
            return self._mask(tensor)
        return torch.cat([self._mask(tensor[part]) for part in slabs(tensor.shape, height)])

    def _mask(self, tensor):
        scores = magnitude(tensor) if self.rank == "abs" else _signed(tensor)
        if scores.is_floating_point():
            scores = torch.where(scores.isnan(), torch.inf, scores)
        if self.both:
            return best_of_four(scores) if self.search == "best" else greedy(scores, self.n, self.m)
        least = -1 if self.rank == "abs" else _least(scores.dtype)
        groups = F.pad(scores, (0, -tensor.shape[-1] % self.m), value=least).unflatten(-1, (-1, self.m))
        best = torch.sort(groups, dim=-1, descending=True, stable=True).indices[..., : self.n]
        kept = torch.zeros(groups.shape, dtype=torch.bool, device=tensor.device).scatter_(-1, best, True)
        return kept.flatten(-2)[..., : tensor.shape[-1]]


def _signed(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise DataError(f"NM: values of {tensor.dtype} have no sign; take rank='abs'")
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _least(dtype: torch.dtype):
    return -torch.inf if dtype.is_floating_point else torch.iinfo(dtype).min

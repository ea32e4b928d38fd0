# SPDX-License-Identifier: Apache-2.0
"""Keeps n of every m neighbours."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..errors import DataError
from .base import Sparsifier
from .choose import magnitude, slabs


class NM(Sparsifier):
    """Keep the `n` largest of every `m` neighbours along the last axis (2:4 is `NM(2, 4)`); of equal ones the first.

    A last group that is shorter keeps its `n` largest too.

    >>> import torch
    >>> NM(2, 4)(torch.tensor([[1.0, -4.0, 3.0, 2.0]])).tolist()
    [[False, True, True, False]]
    """

    counts = True

    def __init__(self, n: int, m: int):
        if not 0 < n <= m:
            raise DataError(f"n of m needs 0 < n <= m, not {n} of {m}")
        self.n, self.m = n, m

    def mask(self, tensor):
        if tensor.numel() == 0:
            return torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
        return torch.cat([self._mask(tensor[part]) for part in slabs(tensor.shape, 1)])

    def _mask(self, tensor):
        scores = magnitude(tensor)
        if scores.is_floating_point():
            scores = torch.where(scores.isnan(), torch.inf, scores)
        groups = F.pad(scores, (0, -tensor.shape[-1] % self.m), value=-1).unflatten(-1, (-1, self.m))
        best = torch.sort(groups, dim=-1, descending=True, stable=True).indices[..., : self.n]
        kept = torch.zeros(groups.shape, dtype=torch.bool, device=tensor.device).scatter_(-1, best, True)
        return kept.flatten(-2)[..., : tensor.shape[-1]]

# SPDX-License-Identifier: Apache-2.0
"""Keeps the largest entries."""

from __future__ import annotations

import torch

from .base import Sparsifier
from .by_row import check_per, counted, keep_largest_of_groups, keep_largest_of_rows
from .choose import check_sparsity, keep_count, keep_largest, magnitude, magnitudes
from .entries_first import entries_first
from .ramp import Ramp


class Magnitude(Sparsifier):
    """Keep the `numel - round(sparsity * numel)` entries of largest magnitude (Han et al., 2015).

    Of equal ones the first in row-major order; NaN counts as the largest. With `per="row"` so many of the elements of
    each row, which is an index of the first axis. `sparsity` may be a `Ramp`: gradual magnitude pruning (Zhu and
    Gupta, 2017); what an update dropped stays dropped.

    >>> import torch
    >>> Magnitude(0.5)(torch.tensor([[1.0, -3.0], [2.0, 0.0]])).tolist()
    [[False, True], [True, False]]

    Raises `DataError` for a share that is not from 0 to 1, and for another `per`.
    """

    counts = True

    def __init__(self, sparsity: float | Ramp, per: str = "tensor"):
        self.sparsity = check_sparsity(sparsity)
        self.per = check_per(per)

    def mask(self, tensor):
        if self.per == "row":
            rows = magnitude(tensor).reshape(tensor.shape[0], -1)
            return keep_largest_of_rows(rows, keep_count(rows.shape[1], self.sparsity)).reshape(tensor.shape)
        kept = keep_largest(magnitudes(tensor), keep_count(tensor.numel(), self.sparsity))
        return kept.reshape(tensor.shape)

    def change(self, view):
        if view.block is not None:
            return super().change(view)
        if self.per == "row":
            return self._change_of_rows(view)
        count = keep_count(view.total, self.sparsity)
        return entries_first(view, keep_largest(magnitudes(view.values), count), count)

    def _change_of_rows(self, view):
        rows = view.grid[0]
        quota = view.rows.new_full((rows,), keep_count(view.total // max(rows, 1), self.sparsity))
        kept = keep_largest_of_groups(magnitude(view.values), view.rows, quota)
        empty = view.empty()
        of_row = empty // max(view.total // max(rows, 1), 1)
        lacking = quota - counted(view.rows, rows)
        first = keep_largest_of_groups(torch.zeros_like(empty), of_row, lacking)
        return kept.nonzero().reshape(-1), empty[first]

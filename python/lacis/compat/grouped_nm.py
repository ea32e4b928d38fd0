# SPDX-License-Identifier: Apache-2.0
"""Keeps n of m neighbours, with few rows alike: STen's n:m:g."""

from __future__ import annotations

import itertools

import torch

from ..errors import DataError
from ..sparsifiers import Sparsifier


class GroupedNMSparsifier(Sparsifier):
    """Keep `n` of `m` neighbours in a row, so that of `g · C(m, n)` rows in a row at most `g` have the same n of m.

    Rows take the places that keep most of them, the largest sums first. Raises `DataError` for sizes that are none.

    >>> GroupedNMSparsifier(1, 2, 1)(torch.tensor([[3.0, 1.0], [2.0, 1.0]])).tolist()
    [[True, False], [False, True]]

    The n:m:g format of STen (Ivanov et al., 2022).
    """

    counts = True

    def __init__(self, n: int, m: int, g: int):
        if not 0 < n <= m or g < 1:
            raise DataError(f"n:m:g needs 0 < n <= m and g of at least 1, not {n}:{m}:{g}")
        self.n, self.m, self.g = n, m, g

    def mask(self, tensor):
        if tensor.ndim != 2:
            raise DataError(f"n:m:g is of a matrix, not of {list(tensor.shape)}")
        rows, columns = tensor.shape
        if not tensor.numel():
            return torch.zeros(rows, columns, dtype=torch.bool, device=tensor.device)
        chosen = torch.tensor([*itertools.combinations(range(self.m), self.n)], device=tensor.device)
        ways = torch.zeros(len(chosen), self.m, dtype=torch.bool, device=tensor.device).scatter_(1, chosen, True)
        height = len(ways) * self.g
        padded = torch.nn.functional.pad(tensor.double().abs(), (0, -columns % self.m, 0, -rows % height))
        tiles = padded.unflatten(1, (-1, self.m)).unflatten(0, (-1, height)).movedim(1, 2)  # [.., .., rows, m]
        sums = (tiles @ ways.double().T).flatten(0, 1)
        mask = ways[self._assigned(sums)].reshape(tiles.shape)
        return mask.movedim(2, 1).flatten(0, 1).flatten(1)[:rows, :columns]

    def _assigned(self, sums: torch.Tensor) -> torch.Tensor:
        """Which of the ways each row of each tile takes; `sums` [tiles, rows, ways] is what it would keep."""
        tiles, rows, ways = sums.shape
        order = sums.reshape(tiles, -1).sort(dim=1, descending=True, stable=True).indices
        taken = torch.full((tiles, rows), -1, dtype=torch.int64, device=sums.device)
        room = torch.full((tiles, ways), self.g, dtype=torch.int64, device=sums.device)
        at = torch.arange(tiles, device=sums.device)
        for pair in order.T:
            row, way = pair // ways, pair % ways
            free = (taken[at, row] < 0) & (room[at, way] > 0)
            taken[at, row] = torch.where(free, way, taken[at, row])
            room[at, way] -= free.long()
        return taken

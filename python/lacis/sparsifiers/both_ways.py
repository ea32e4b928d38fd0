# SPDX-License-Identifier: Apache-2.0
"""Masks of n of m both ways: at most n in each row and in each column of every m×m tile, so that the transpose is n of
m too (transposable masks, Hubara et al., 2021)."""

from __future__ import annotations

import functools
import itertools

import torch
import torch.nn.functional as F

_MOST = 1e300  # what is not finite counts as this in a sum, so that two of them are more than one


def greedy(scores: torch.Tensor, n: int, m: int) -> torch.Tensor:
    """bool of the shape of `scores` [rows, columns], of which none is NaN: elements of a tile are taken from the
    largest downwards while their row and column have room; of equal ones the first.

    A tile at the edge has the elements that it has.

    >>> greedy(torch.arange(16.0).reshape(4, 4), 2, 4).int().tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    """
    tiles, inside = _tiled(scores, m)
    order = tiles.sort(dim=1, descending=True, stable=True).indices
    at = torch.arange(len(tiles), device=scores.device)
    in_row, in_column = (torch.zeros(len(tiles), m, dtype=torch.int64, device=scores.device) for _ in range(2))
    kept = torch.zeros_like(inside)
    for place in order.T:
        row, column = place // m, place % m
        takes = inside[at, place] & (in_row[at, row] < n) & (in_column[at, column] < n)
        kept[at, place] = takes
        in_row[at, row] += takes
        in_column[at, column] += takes
    return _untiled(kept, scores.shape, m)


def best_of_four(scores: torch.Tensor) -> torch.Tensor:
    """bool of the shape of `scores` [rows, columns]: of the 90 masks that keep 2 in each row and column of a 4×4 tile
    the one with the largest sum; of equal ones that which keeps the first places.

    A tile at the edge keeps as many of its elements as any of the masks does.

    >>> best_of_four(torch.tensor([[9.0, 9, 1, 0], [9, 9, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])).int().sum().item()
    8
    """
    finite = scores.double().clamp(-_MOST, _MOST)
    tiles, inside = _tiled(finite, 4)
    masks = _full_masks(scores.device)
    sums, lost = _sums(tiles, masks), _sums((~inside).double(), masks)
    sums = torch.where(lost == lost.amin(1, keepdim=True), sums, -torch.inf)
    numbers = torch.arange(len(masks), device=scores.device)
    first = torch.where(sums == sums.amax(1, keepdim=True), numbers, len(masks)).amin(1)
    return _untiled(masks.reshape(-1, 16)[first] & inside, scores.shape, 4)


def _sums(tiles: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """[tiles, masks]: what each mask keeps, row by row, in one order on every device."""
    rows, found = tiles.reshape(-1, 4, 4), 0.0
    for row in range(4):
        first, second = masks[:, row].nonzero()[:, 1].reshape(-1, 2).T
        found = found + (rows[:, row, first] + rows[:, row, second])
    return found


@functools.lru_cache(maxsize=8)
def _full_masks(device: torch.device) -> torch.Tensor:
    """bool [90, 4, 4]: those with two in each row and column; what keeps earlier places comes first."""
    rows = [[place in pair for place in range(4)] for pair in itertools.combinations(range(4), 2)]
    found = [four for four in itertools.product(rows, repeat=4) if all(sum(column) == 2 for column in zip(*four))]
    return torch.tensor(found, device=device)


def _tiled(scores: torch.Tensor, m: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[tiles, m * m] of a matrix filled up with zeros, and which elements are its own."""
    rows, columns = scores.shape
    beyond = (0, -columns % m, 0, -rows % m)
    apart = lambda t: F.pad(t, beyond).unflatten(0, (-1, m)).unflatten(2, (-1, m)).transpose(1, 2).reshape(-1, m * m)
    return apart(scores), apart(torch.ones_like(scores, dtype=torch.bool))


def _untiled(tiles: torch.Tensor, shape, m: int) -> torch.Tensor:
    rows, columns = shape
    high, wide = -(-rows // m), -(-columns // m)
    return tiles.reshape(high, wide, m, m).transpose(1, 2).reshape(m * high, m * wide)[:rows, :columns]

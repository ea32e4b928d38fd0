# SPDX-License-Identifier: Apache-2.0
"""Keeps what a mask or a pattern says."""

from __future__ import annotations

import torch

from ..errors import DataError
from .attention.rule import PatternRule
from .base import Sparsifier


class Given(Sparsifier, PatternRule):
    """Keep the True elements of a bool mask, or the entries of a `lacis.Pattern`.

    For attention it is a rule: a mask [q, k] or [heads | 1, q, k], or a layout of its blocks.

    >>> import torch
    >>> Given(torch.tensor([True, False]))(torch.ones(2)).tolist()
    [True, False]
    """

    counts = True

    def __init__(self, mask_or_pattern):
        self.source = mask_or_pattern

    def mask(self, tensor):
        mask = self._given()
        if isinstance(mask, torch.Tensor) and mask.ndim > tensor.ndim > 0 and mask.shape[0] == tensor.shape[0]:
            return mask.flatten(tensor.ndim - 1)  # of a tensor of more axes, which is stored as a matrix
        return mask

    def layout(self, heads, q, k, block):
        given, grid = self._by_head(), self.grid(q, k, block)
        if given.shape[1:] == grid or not self._of_entries(q, k, block):
            return given
        rows, columns = self.sides(block)
        padded = torch.nn.functional.pad(given, (0, grid[1] * columns - k, 0, grid[0] * rows - q))
        return padded.reshape(-1, grid[0], rows, grid[1], columns).any(4).any(2)

    def entry_mask(self, q, k, block):
        if not self._of_entries(q, k, block):
            return None
        given = self._by_head()
        return lambda b, h, i, j: given.to(i.device)[h % len(given), i, j]

    def _by_head(self) -> torch.Tensor:
        mask = self._given()
        return mask[None] if mask.ndim == 2 else mask

    def _of_entries(self, q, k, block) -> bool:
        """Are these entries, and not blocks? Raises `DataError` where they are neither."""
        shape, grid = tuple(self._by_head().shape[1:]), self.grid(q, k, block)
        if shape not in ((q, k), grid):
            raise DataError(f"Given: {list(shape)} are neither the entries of {q} x {k} nor the blocks, {list(grid)}")
        return shape == (q, k) != grid

    def _given(self):
        to_mask = getattr(self.source, "to_mask", None)
        return self.source if to_mask is None else to_mask()

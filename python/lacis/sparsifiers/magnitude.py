# SPDX-License-Identifier: Apache-2.0
"""Keeps the largest entries."""

from __future__ import annotations

from .base import Sparsifier
from .choose import check_sparsity, keep_count, keep_largest, magnitudes


class Magnitude(Sparsifier):
    """Keep the `numel - round(sparsity * numel)` entries of largest magnitude (Han et al., 2015).

    Of equal ones the first in row-major order; NaN counts as the largest.

    >>> import torch
    >>> Magnitude(0.5)(torch.tensor([[1.0, -3.0], [2.0, 0.0]])).tolist()
    [[False, True], [True, False]]
    """

    counts = True

    def __init__(self, sparsity: float):
        self.sparsity = check_sparsity(sparsity)

    def mask(self, tensor):
        kept = keep_largest(magnitudes(tensor), keep_count(tensor.numel(), self.sparsity))
        return kept.reshape(tensor.shape)

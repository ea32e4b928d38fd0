# SPDX-License-Identifier: Apache-2.0
"""Keeps what a mask or a pattern says."""

from __future__ import annotations

import torch

from .base import Sparsifier


class Given(Sparsifier):
    """Keep the True elements of a bool mask, or the entries of a `lacis.Pattern`.

    >>> import torch
    >>> Given(torch.tensor([True, False]))(torch.ones(2)).tolist()
    [True, False]
    """

    counts = True

    def __init__(self, mask_or_pattern):
        self.source = mask_or_pattern

    def mask(self, tensor):
        to_mask = getattr(self.source, "to_mask", None)
        mask = self.source if to_mask is None else to_mask()
        if isinstance(mask, torch.Tensor) and mask.ndim > tensor.ndim > 0 and mask.shape[0] == tensor.shape[0]:
            return mask.flatten(tensor.ndim - 1)  # of a tensor of more axes, which is stored as a matrix
        return mask

# SPDX-License-Identifier: Apache-2.0
"""Keeps the entries that are not zero now."""

from __future__ import annotations

from .base import Sparsifier


class Keep(Sparsifier):
    """Keep what is not zero now: what happens without a sparsifier.

    >>> import torch
    >>> Keep()(torch.tensor([0.0, 2.0])).tolist()
    [False, True]
    """

    def mask(self, tensor):
        return tensor != 0

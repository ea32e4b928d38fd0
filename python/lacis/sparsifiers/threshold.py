# SPDX-License-Identifier: Apache-2.0
"""Keeps what is larger than a value."""

from __future__ import annotations

from .base import Sparsifier
from .choose import magnitude


class Threshold(Sparsifier):
    """Keep the entries with a magnitude above `value`, and NaN.

    >>> import torch
    >>> Threshold(1.0)(torch.tensor([-2.0, 1.0, 1.5])).tolist()
    [True, False, True]
    """

    def __init__(self, value: float):
        self.value = value

    def mask(self, tensor):
        return ~(magnitude(tensor) <= self.value)

# SPDX-License-Identifier: Apache-2.0
"""Random bits of coordinates: the same for the same seed and place, whatever runs and wherever."""

from __future__ import annotations

import torch

_LOW = 0xFFFFFFFF
_MULTIPLY = (0xD2511F53, 0xCD9E8D57)
_ADD = (0x9E3779B9, 0xBB67AE85)


def philox(seed: torch.Tensor, counters) -> torch.Tensor:
    """32 random bits, as int64, of a seed and up to four int64 counters below 2**32.

    The first word of Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), whose key is
    the seed's 64 bits.

    >>> zero = torch.zeros(1, dtype=torch.int64)
    >>> hex(philox(torch.tensor(0), [zero, zero, zero, zero]).item())
    '0x6627e8d5'
    """
    x = [counter & _LOW for counter in counters]
    x += [torch.zeros_like(x[0])] * (4 - len(x))
    key = [seed & _LOW, (seed >> 32) & _LOW]
    for _ in range(10):
        (high0, low0), (high2, low2) = _product(x[0], _MULTIPLY[0]), _product(x[2], _MULTIPLY[1])
        x = [high2 ^ x[1] ^ key[0], low2, high0 ^ x[3] ^ key[1], low0]
        key = [(word + add) & _LOW for word, add in zip(key, _ADD)]
    return x[0]


def _product(a: torch.Tensor, b: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The high and the low 32 bits of a product of such; int64 holds its 64 bits, the sign among them."""
    whole = a * b
    return (whole >> 32) & _LOW, whole & _LOW

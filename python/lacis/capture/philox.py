# SPDX-License-Identifier: Apache-2.0
"""Random bits of coordinates: the same for the same seed and place, whatever runs and wherever."""

from __future__ import annotations

import torch

ROUNDS = 7
MULTIPLY = (0xD2511F53, 0xCD9E8D57)
ADD = (0x9E3779B9, 0xBB67AE85)
# Four places share the four words of one counter: those eight rows and eight columns apart, as threads that multiply on
# tensor cores have them of a tile and of its transpose.
APART = 8
_LOW = 0xFFFFFFFF


def philox(seed: torch.Tensor, counters) -> list[torch.Tensor]:
    """Four words of 32 random bits, as int64, of a seed and four int64 counters below 2**32.

    Philox4x32-7 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), whose key is the seed's 64 bits;
    seven rounds are the fewest that pass their tests.

    >>> zero = torch.zeros(1, dtype=torch.int64)
    >>> [hex(word.item()) for word in philox(torch.tensor(0), [zero, zero, zero, zero])]
    ['0x5f6fb709', '0xd893f64', '0x4f121f81', '0x4f730a48']
    """
    x = [counter & _LOW for counter in counters]
    key = [seed & _LOW, (seed >> 32) & _LOW]
    for _ in range(ROUNDS):
        (high0, low0), (high2, low2) = _product(x[0], MULTIPLY[0]), _product(x[2], MULTIPLY[1])
        x = [high2 ^ x[1] ^ key[0], low2, high0 ^ x[3] ^ key[1], low0]
        key = [(word + add) & _LOW for word, add in zip(key, ADD)]
    return x


def random_bits(seed: torch.Tensor, b, h, i, j) -> torch.Tensor:
    """32 random bits, as int64, of a seed and int64 coordinates below 2**32.

    >>> place = [torch.tensor([n]) for n in (0, 1, 9, 3)]
    >>> random_bits(torch.tensor(7), *place) == philox(torch.tensor(7), [place[3], place[2] - 8, *place[1::-1]])[2]
    tensor([True])
    """
    words = philox(seed, [j & ~APART, i & ~APART, h, b])
    below, beside = (i & APART) != 0, (j & APART) != 0
    return torch.where(below, torch.where(beside, words[3], words[2]), torch.where(beside, words[1], words[0]))


def _product(a: torch.Tensor, b: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The high and the low 32 bits of a product of such; int64 holds its 64 bits, the sign among them."""
    whole = a * b
    return (whole >> 32) & _LOW, whole & _LOW

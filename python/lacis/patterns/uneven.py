# SPDX-License-Identifier: Apache-2.0
"""Which axes of a pattern are uneven: one coordinate has far more entries than most."""

from __future__ import annotations

import torch


def uneven_axes(shape, axes: list[torch.Tensor], *, blocks: bool = False) -> tuple[bool, ...]:
    """For each axis of `shape`: does one coordinate have so many entries that its worker works on when all others rest?

    `axes` are the entries' coordinates, int64 [n] per axis. Uneven is more than four times the mean (2.5 times where
    they are of stored `blocks`, whose rows are few), more than 256, and more than a 4096th of all entries.

    >>> row, column = torch.zeros(300, dtype=torch.int64), torch.arange(300)
    >>> uneven_axes((300, 300), [row, column])
    (True, False)
    """
    entries = axes[0].numel()
    if entries <= 256:
        return (False,) * len(shape)
    counts = [torch.zeros(size, dtype=torch.int64, device=axes[0].device) for size in shape]
    for count, axis in zip(counts, axes):
        count.scatter_add_(0, axis, torch.ones_like(axis))
    times = 2.5 if blocks else 4
    longest = torch.stack([count.max() for count in counts]).tolist()
    return tuple(length > max(256, times * entries / size, entries / 4096) for length, size in zip(longest, shape))

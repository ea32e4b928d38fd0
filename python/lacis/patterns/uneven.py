# SPDX-License-Identifier: Apache-2.0
"""How the entries of a pattern fall along its axes: unevenly, on most of the coordinates, or on few."""

from __future__ import annotations

import math

import torch


def uneven_axes(shape, axes: list[torch.Tensor], *, blocks: bool = False, sides=None) -> tuple[bool, ...]:
    """For each axis of `shape`: does one coordinate have so many entries that its worker works on when all others rest?

    `axes` are the entries' coordinates, int64 [n] per axis. Uneven is more than four times the mean (2.5 times where
    they are of stored `blocks`, whose rows are few), more than 256, and more than a 4096th of all entries. With `sides`
    of whole blocks `shape` and `axes` are those of a grid of them.

    >>> row, column = torch.zeros(300, dtype=torch.int64), torch.arange(300)
    >>> uneven_axes((300, 300), [row, column])
    (True, False)
    >>> row, column = torch.tensor([0] * 8 + [5]), torch.arange(9)
    >>> uneven_axes((16, 16), [row, column], sides=(64, 64))
    (True, False)
    """
    sides = sides or (1,) * len(shape)
    each = math.prod(sides)
    entries = axes[0].numel() * each
    if entries <= 256:
        return (False,) * len(shape)
    counts = [torch.zeros(size, dtype=torch.int64, device=axes[0].device) for size in shape]
    for count, axis in zip(counts, axes):
        count.scatter_add_(0, axis, torch.ones_like(axis))
    times = 2.5 if blocks or each > 1 else 4
    longest = torch.stack([count.max() for count in counts]).tolist()
    found = []
    for length, size, side in zip(longest, shape, sides):
        found.append(length * each / side > max(256, times * entries / (size * side), entries / 4096))
    return tuple(found)


def uneven_axes_of(parts, shape) -> tuple[bool, ...]:
    """`uneven_axes` of the entries of all structures `parts` together."""
    entries: list[list[torch.Tensor]] = [[] for _ in shape]
    for part in parts:
        axes, valid = part.coordinates()
        for found, axis in zip(entries, axes):
            found.append(axis[valid])
    axes = [torch.cat(found) for found in entries]
    return uneven_axes(shape, axes, blocks=any(part.format.tile for part in parts))


def most_are_listed(parts, shape) -> tuple[bool, ...]:
    """For each axis: does the first level list at least half of its coordinates, 1024 or more?

    Then a loop over the list saves nothing. From the arrays' sizes alone; False for the parts of a sum.
    """
    flags, (first, *others) = [False] * len(shape), parts
    number = len(first.format.batch)
    level, listed = first.format.levels[number], first.buffers.get(f"crd{number}")
    has_axes = not others and not first.format.bindings  # a binding's coordinates are none of an axis
    if has_axes and listed is not None and getattr(level.coordinate, "unique", False):
        for digit in level.digits:
            flags[digit.axis] = listed.numel() >= max(1024, level.size(shape) / 2)
    return tuple(flags)


def most_are_empty(parts, shape) -> tuple[bool, ...]:
    """For each axis of 1024 coordinates or more: have at least half of them no entry, by what a level names?

    Then the entries are fewer than the rows. From the arrays' sizes alone; False for the parts of a sum.
    """
    flags, (first, *others) = [False] * len(shape), parts
    if others or first.format.bindings:
        return tuple(flags)
    for number, level in enumerate(first.format.levels):
        named = first.buffers.get(f"crd{number}")
        for digit in level.digits if named is not None else ():
            size = digit.extent(shape)
            flags[digit.axis] |= size >= 1024 and 2 * named.numel() <= size
    return tuple(flags)

# SPDX-License-Identifier: Apache-2.0
"""Which stored values are entries, where the coordinates do not say it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ..formats import Format


def bitmap(structure, at: torch.Tensor, count_named: Callable[[], int] | None = None) -> torch.Tensor | None:
    """True at entries; None when there is no padding that the coordinates do not show.

    `count_named` answers how many slots coordinates name, where these are those of entries alone.
    """
    if at.numel() == math.prod(structure.block_shape):
        return None
    if not structure.needs_valid and at.numel() == _named(structure, count_named):
        return None
    valid = torch.zeros(math.prod(structure.block_shape), dtype=torch.bool, device=at.device)
    return valid.index_fill_(0, at, True).reshape(structure.block_shape)


def _named(structure, count_named: Callable[[], int] | None) -> int:
    """How many places of the values have coordinates inside of the shape."""
    format = structure.format
    if format.bindings or not _divides(format, structure.shape):  # a block reaches over the end
        return int(structure.pattern_coordinates()[1].sum())
    padded = any((level.padded and not level.extent.covers) or level.extent.gaps for level in format.prefix)
    if padded and count_named is not None:
        return count_named() * math.prod(format.tile)
    slots = int(structure.slot_axes()[1].sum()) if padded else structure.slots
    return slots * math.prod(format.tile)


def _divides(format: Format, shape) -> bool:
    """Do the blocks of a format divide every axis?"""
    covered = [1] * len(shape)
    for digit in (digit for level in format.levels for digit in level.digits):
        covered[digit.axis] *= digit.extent(shape)
    return covered == list(shape)

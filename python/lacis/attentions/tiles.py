# SPDX-License-Identifier: Apache-2.0
"""Which attention is one kernel on tensor cores, as lib/Transforms/Loops/RolledTiles.cpp takes it."""

from __future__ import annotations

import torch

from ..formats import Sum
from ..patterns import Pattern

_WIDTHS = (16, 32, 64, 128)  # of heads
_SIDE = 64  # of a tile
_PARTS = (8, 16, 32)  # of its side, which stored blocks may have


def takes_tiles(pattern: Pattern, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Half types on sm_90a, whole stored blocks that tiles of 64 rows and columns have, or are parts of.

    Blocks divide the lengths; those with a side of less than 64 are of a pattern that heads share, of multiples of 64.
    """
    if q.device.type != "cuda" or torch.cuda.get_device_capability(q.device) != (9, 0):
        return False
    if q.dtype not in (torch.bfloat16, torch.float16) or q.shape[3] not in _WIDTHS or v.shape[3] not in _WIDTHS:
        return False
    return takes_pattern(pattern)


def takes_pattern(pattern: Pattern) -> bool:
    """The same of the pattern alone."""
    if isinstance(pattern.format, Sum) or len(pattern.format.tile) != 2 or pattern.part().valid is not None:
        return False
    sides, lengths = pattern.format.tile, pattern.shape[-2:]
    if any(length % side or (side % _SIDE and side not in _PARTS) for side, length in zip(sides, lengths)):
        return False
    is_whole = all(side % _SIDE == 0 for side in sides)
    return is_whole or (len(pattern.shape) == 2 and not any(length % _SIDE for length in lengths))

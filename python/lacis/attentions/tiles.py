# SPDX-License-Identifier: Apache-2.0
"""Which attention is one kernel on tensor cores, as lib/Transforms/Loops/RolledTiles.cpp takes it."""

from __future__ import annotations

import torch

from ..formats import Sum
from ..patterns import Pattern

_WIDTHS = (16, 32, 64, 128)  # of heads
_SIDE = 64  # of a tile


def takes_tiles(pattern: Pattern, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Half types on sm_90a, whole stored blocks of multiples of 64 rows and columns, which divide the lengths."""
    if q.device.type != "cuda" or torch.cuda.get_device_capability(q.device) != (9, 0):
        return False
    if q.dtype not in (torch.bfloat16, torch.float16) or q.shape[3] not in _WIDTHS or v.shape[3] not in _WIDTHS:
        return False
    return takes_pattern(pattern)


def takes_pattern(pattern: Pattern) -> bool:
    """The same of the pattern alone."""
    if isinstance(pattern.format, Sum) or len(pattern.format.tile) != 2 or pattern.part().valid is not None:
        return False
    return all(
        side % _SIDE == 0 and length % side == 0 for side, length in zip(pattern.format.tile, pattern.shape[-2:])
    )

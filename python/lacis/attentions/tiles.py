# SPDX-License-Identifier: Apache-2.0
"""Which attention is one kernel on tensor cores, as lib/Transforms/Loops/RolledTiles.cpp takes it."""

from __future__ import annotations

import torch

from ..formats import Sum
from ..patterns import Pattern
from .walks import in_squares

_WIDTHS = (16, 32, 64, 128)  # of heads
_SIDE = 64  # of a tile
_WIDE = 128  # columns of a tile where no gradient walks columns, whose blocks then are the rows


def tiled(pattern: Pattern, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Pattern | None:
    """The pattern in blocks that are tiles, or None: half types on sm_90a, whole stored blocks of multiples of 64 rows
    and columns, which divide lengths. Other blocks than those of tiles are cut once, so they are not lists that change.
    """
    if q.device.type != "cuda" or torch.cuda.get_device_capability(q.device) != (9, 0):
        return None
    if q.dtype not in (torch.bfloat16, torch.float16) or q.shape[3] not in _WIDTHS or v.shape[3] not in _WIDTHS:
        return None
    return in_tiles(pattern, q, k, v)


def in_tiles(pattern: Pattern, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Pattern | None:
    """The same of the pattern alone."""
    if isinstance(pattern.format, Sum) or len(pattern.format.tile) != 2 or pattern.part().valid is not None:
        return None
    tile, lengths = pattern.format.tile, pattern.shape[-2:]
    if any(side % _SIDE or length % side for side, length in zip(tile, lengths)):
        return None
    has_gradients = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    has_room = q.shape[3] + v.shape[3] <= 128  # else two stages of wide tiles do not fit twice into shared memory
    if tile == (_SIDE, _SIDE) or (tile == (_SIDE, _WIDE) and has_room and not has_gradients):
        return pattern
    return in_squares(pattern, _SIDE) if "compressed" in pattern.format.text else None

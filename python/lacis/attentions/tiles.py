# SPDX-License-Identifier: Apache-2.0
"""Which attention is one kernel on tensor cores, as lib/Transforms/Loops/RolledTiles.cpp takes it."""

from __future__ import annotations

import torch

from ..patterns import Pattern

_WIDTHS = (16, 32, 64, 128)  # of heads
_BLOCKS = ((64, 64), (64, 128))
_BOTH_WAYS = ((64, 64),)  # gradients walk columns, too, whose blocks then are the rows


def takes_tiles(pattern: Pattern, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Half types, on whole stored blocks of 64 rows, and 64 columns for gradients, which divide lengths, on sm_90a."""
    if q.device.type != "cuda" or torch.cuda.get_device_capability(q.device) != (9, 0):
        return False
    if q.dtype not in (torch.bfloat16, torch.float16) or q.shape[3] not in _WIDTHS or v.shape[3] not in _WIDTHS:
        return False
    tile, (rows, columns) = pattern.format.tile, pattern.shape[-2:]
    has_gradients = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    if tile not in (_BOTH_WAYS if has_gradients else _BLOCKS) or pattern.part().valid is not None:
        return False
    if rows % tile[0] or columns % tile[1]:
        return False
    return tile[1] == 64 or q.shape[3] + v.shape[3] <= 128  # else two stages do not fit twice into shared memory

# SPDX-License-Identifier: Apache-2.0
"""Which attention is one kernel on tensor cores, as lib/Transforms/Loops/RolledTiles.cpp takes it."""

from __future__ import annotations

import torch

from ..patterns import Pattern

_WIDTHS = (16, 32, 64, 128)  # of heads
_SIDE = 64  # of a tile


def takes_tiles(pattern: Pattern, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Half types without gradients, on whole stored blocks that tiles divide, which divide the lengths, sm_90a."""
    if q.device.type != "cuda" or torch.cuda.get_device_capability(q.device) != (9, 0):
        return False
    if q.dtype not in (torch.bfloat16, torch.float16) or q.shape[3] not in _WIDTHS or v.shape[3] not in _WIDTHS:
        return False
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        return False
    tile, (rows, columns) = pattern.format.tile, pattern.shape[-2:]
    if len(tile) != 2 or any(side % _SIDE for side in tile):
        return False
    return pattern.part().valid is None and rows % tile[0] == 0 and columns % tile[1] == 0

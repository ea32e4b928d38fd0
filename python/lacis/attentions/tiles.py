# SPDX-License-Identifier: Apache-2.0
"""Which attention is one kernel on tensor cores, as lib/Transforms/Loops/RolledTiles.cpp takes it."""

from __future__ import annotations

import functools
import math

import torch

from ..formats import Sum
from ..patterns import Pattern

_WIDTHS = (16, 32, 64, 128, 192, 256)  # of heads
_FACTORS = 384  # columns of q and v whose gradients run on tiles: of 448 ptxas sets products in a row
SIDE = 64  # of a tile
_PARTS = (8, 16, 32)  # of its side, which stored blocks may have
_CHUNK = 16  # bytes, at multiples of which copies of lines begin
_NUMBERS = 4  # of float32 in such a chunk: vectors along columns that are gathered have multiples


def on_gpu(tensor: torch.Tensor) -> bool:
    """Are kernels for it those of tiles, else loops?"""
    return tensor.device.type != "cpu"


def takes_tiles(pattern: Pattern, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Half types on GPUs from sm_80 on, whole stored blocks that tiles of 64 rows and columns have, or are parts of.

    Lengths are any, but for sides of less than 64 multiples of 4.
    """
    return takes_heads(q, v) and takes_pattern(pattern)


def takes_heads(q: torch.Tensor, v: torch.Tensor) -> bool:
    """The same of the operands alone."""
    return takes_type(q) and q.shape[3] in _WIDTHS and v.shape[3] in _WIDTHS


def takes_gradients(q: torch.Tensor, v: torch.Tensor) -> bool:
    """Of heads that `takes_heads` takes: do their gradients fit into tiles, too?"""
    return q.shape[-1] + v.shape[-1] <= _FACTORS


def takes_type(q: torch.Tensor) -> bool:
    """The same of their device and dtype alone."""
    return q.device.type == "cuda" and q.dtype in (torch.bfloat16, torch.float16) and _has_tiles(q.device)


@functools.lru_cache(maxsize=64)  # devices of a host; torch takes some µs to tell, and a call asks three times
def _has_tiles(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= (8, 0)


def padded(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with zeros behind its last axis up to the next width that heads have; wider ones stay.

    >>> padded(torch.ones(1, 80)).shape, padded(torch.ones(1, 64)).shape, padded(torch.ones(1, 320)).shape
    (torch.Size([1, 128]), torch.Size([1, 64]), torch.Size([1, 320]))
    """
    width = tensor.shape[-1]
    wanted = next((known for known in _WIDTHS if known >= width), width)
    return tensor if wanted == width else torch.nn.functional.pad(tensor, (0, wanted - width))


def takes_pattern(pattern: Pattern) -> bool:
    """The same of the pattern alone."""
    if isinstance(pattern.format, Sum) or len(pattern.format.tile) != 2 or pattern.part().valid is not None:
        return False
    if all(side % SIDE == 0 for side in pattern.format.tile):
        return True
    even = all(length % _NUMBERS == 0 for length in pattern.shape[-2:])
    return even and all(side % SIDE == 0 or side in _PARTS for side in pattern.format.tile)


def room_behind(pattern: Pattern) -> int:
    """How many elements of [..., Sq, Sk] the tiles of a pattern have behind the last one: those of tails."""
    rows, columns = pattern.shape[-2:]
    behind, right = (-length % math.lcm(side, SIDE) for length, side in zip((rows, columns), pattern.part().sides))
    return behind * columns + right


def at_chunks(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, copied where it begins inside of a chunk that is copied whole."""
    return tensor if tensor.data_ptr() % _CHUNK == 0 else tensor.clone()

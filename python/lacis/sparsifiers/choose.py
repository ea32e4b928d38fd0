# SPDX-License-Identifier: Apache-2.0
"""Choosing the largest scores, with ties broken by position, and scores that look random but repeat."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..errors import DataError


def check_sparsity(sparsity) -> float:
    """Raise `DataError` unless it is a share between 0 and 1."""
    if not isinstance(sparsity, (int, float)) or not 0 <= sparsity <= 1:
        raise DataError(f"a sparsity is a share from 0 to 1, not {sparsity!r}")
    return float(sparsity)


def keep_count(numel: int, sparsity: float) -> int:
    """`numel - round(sparsity * numel)`.

    >>> keep_count(10, 0.9)
    1
    """
    return numel - round(sparsity * numel)


def keep_largest(scores: torch.Tensor, count: int) -> torch.Tensor:
    """bool of the shape of `scores`: the `count` largest; of equal ones the first. NaN counts as the largest.

    >>> keep_largest(torch.tensor([1.0, 3.0, 1.0]), 2).tolist()
    [True, True, False]
    """
    if count <= 0 or scores.numel() == 0:
        return torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
    if count >= scores.numel():
        return torch.ones(scores.shape, dtype=torch.bool, device=scores.device)
    flat = scores.reshape(-1)
    if flat.is_floating_point():
        flat = flat.double() if flat.dtype == torch.float64 else flat.float()
        flat = torch.where(flat.isnan(), torch.inf, flat)
    edge = torch.kthvalue(flat, flat.numel() - count + 1).values
    above, ties = flat > edge, flat == edge
    kept = above | (ties & (torch.cumsum(ties, 0) <= count - above.sum()))
    return kept.reshape(scores.shape)


def magnitude(tensor: torch.Tensor) -> torch.Tensor:
    """|tensor| in a type that compares: float32 for half types."""
    wide = tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
    return wide.abs()


def hashed(shape, seed: int, device) -> torch.Tensor:
    """int64 of `shape`: a number for each position that looks random and is the same on every device."""
    numel = 1
    for size in shape:
        numel *= size
    word = torch.arange(numel, dtype=torch.int64, device=device) + _signed(seed * 0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        word = (word ^ ((word >> shift) & ((1 << (64 - shift)) - 1))) * _signed(factor)
    return word.reshape(tuple(shape))


def _signed(value: int) -> int:
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value


def blocked(tensor: torch.Tensor, block) -> torch.Tensor:
    """[grid..., prod(block)]: the blocks of a tensor, filled up with zeros at the edges."""
    pad = [edge for size, b in zip(reversed(tensor.shape), reversed(block)) for edge in (0, -size % b)]
    tensor = F.pad(tensor, pad)
    rank = tensor.ndim
    grid = [size // b for size, b in zip(tensor.shape, block)]
    tensor = tensor.reshape([n for pair in zip(grid, block) for n in pair])
    tensor = tensor.permute([2 * a for a in range(rank)] + [2 * a + 1 for a in range(rank)])
    return tensor.reshape(*grid, -1)


def spread(grid: torch.Tensor, block, shape) -> torch.Tensor:
    """A value per block repeated over its elements, cut to `shape`."""
    for axis, size in enumerate(block):
        grid = grid.repeat_interleave(size, axis)
    return grid[tuple(slice(0, size) for size in shape)]

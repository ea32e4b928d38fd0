# SPDX-License-Identifier: Apache-2.0
"""The sum of products of each row of two tensors: what gradients of attention take from those of the shares."""

from __future__ import annotations

import functools

import torch

from ..emit.mlir import TYPES
from ..emit.row_products import row_products as row_products_text
from ..runtime import library
from ..runtime.kernels import compile_on


def row_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The sums of `a * b` along the last axis, float32 at least, of [..., D] both.

    Half types take one kernel, which has no copies in float32, on rows of a power of two; 192 is three of them.
    """
    if a.dtype not in (torch.bfloat16, torch.float16):
        return (a * b).sum(-1)
    whole = a.shape[-1]
    width = whole if a.device.type == "cpu" else whole & -whole
    parts = [_with_heads(x).unflatten(-1, (-1, width)) for x in (a, b)]
    with torch.no_grad():
        found = library.einsum(parts, [], list(parts[0].shape[:-1]), _key(a.dtype, width, a.device))
    return (found.squeeze(-1) if width == whole else found.sum(-1)).reshape(a.shape[:-1])


def _with_heads(x: torch.Tensor) -> torch.Tensor:
    """[batch, ..., rows, D] as [batch, heads, rows, D], where it lies: groups of heads are neighbours."""
    return x[(None,) * (4 - x.ndim)] if x.ndim <= 4 else x.flatten(1, -3)


@functools.cache
def _key(dtype: torch.dtype, width: int, device: torch.device) -> str:
    text = row_products_text(TYPES[dtype], width, device.type != "cpu")
    return compile_on(text, device).key

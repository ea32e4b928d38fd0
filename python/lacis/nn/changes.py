# SPDX-License-Identifier: Apache-2.0
"""What the calls of a module's attention say of scores, as arguments of `lacis.attention`."""

from __future__ import annotations

import torch
from torch.nn.attention.bias import CausalBias, CausalVariant


def in_turn(first, second):
    """A score function after another, either of which may be None."""
    return first or second if first is None or second is None else _InTurn(first, second).at


class _InTurn:
    """Two functions. Graphs of torch know methods of what is made in them, and functions that are not."""

    def __init__(self, first, second):
        self.first, self.second = first, second

    def at(self, s, b, h, i, j):
        return self.second(self.first(s, b, h, i, j), b, h, i, j)


def capped(cap: float | None):
    """A score function that keeps scores between -cap and cap; None of none."""
    return None if cap is None else _Capped(cap).at


class _Capped:
    def __init__(self, cap: float):
        self.cap = cap

    def at(self, s, b, h, i, j):
        return self.cap * torch.tanh(s / self.cap)


def as_autocast(*tensors: torch.Tensor | None) -> tuple:
    """The tensors in the dtype of autocast, where it is on; what is no floating point stays, and so does float64.

    >>> with torch.autocast("cpu", torch.bfloat16):
    ...     [None if x is None else x.dtype for x in as_autocast(torch.ones(1), torch.ones(1).bool(), None)]
    [torch.bfloat16, torch.bool, None]
    """
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    stays = lambda x: x is None or not x.is_floating_point() or x.dtype == torch.float64
    return tuple(x if stays(x) else x.to(dtype) for x in tensors)


def written_out(mask: torch.Tensor | None, causal: bool, device) -> tuple[torch.Tensor | None, bool]:
    """The mask and `is_causal` of a call, of torch's `CausalBias` too, whose memory says nothing."""
    if not isinstance(mask, CausalBias):
        return mask, causal
    if mask.seq_len_q == mask.seq_len_kv or mask.variant is CausalVariant.UPPER_LEFT:
        return None, True
    return mask._materialize(device), causal


def changes_of(mask: torch.Tensor | None, q, k, ndim: int) -> dict:
    """What an `attn_mask` says: key padding where all queries have one row, else a mask or a bias of entries."""
    if mask is None:
        return {}
    sizes = (*q.shape[:3], k.shape[2])
    mask = mask[:, None] if ndim == 3 and mask.ndim == 3 else mask
    alike = mask.ndim == 4 and all(mask.shape[axis] == 1 or mask.stride(axis) == 0 for axis in (1, 2))
    if alike:
        return {"key_padding": mask[:, 0, 0].expand(sizes[0], sizes[3])}
    if mask.dtype == torch.bool and torch.compiler.is_compiling():  # a graph's operands are tensors, no functions
        mask = torch.where(mask, 0.0, -torch.inf)
    whole = mask.expand(sizes)
    return {"mask": lambda b, h, i, j: whole[b, h, i, j]} if mask.dtype == torch.bool else {"bias": whole}

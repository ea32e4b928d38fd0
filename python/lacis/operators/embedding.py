# SPDX-License-Identifier: Apache-2.0
"""The embedding: rows of a packed table, of which only the entries are read."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..formats import Bsr, Csr, Format
from ..formats.kinds.fixed import Fixed
from ..formats.widths import without_widths
from .operator import Operator, operator


@operator
class Embedding(Operator):
    """`torch.nn.Embedding` from a table in rows: `Csr`, `Ell`, `Bsr`, `BlockedEll`. It runs torch's own operators."""

    name = "embedding"
    statement = None
    rank = 2

    def matches(self, module):
        return isinstance(module, torch.nn.Embedding) and type(module).forward is torch.nn.Embedding.forward

    def refusal(self, module):
        if module.max_norm is not None:
            return "has max_norm, which writes rows at every call; take the norm in the loss, or leave it dense"
        if module.scale_grad_by_freq or module.sparse:
            name = "scale_grad_by_freq" if module.scale_grad_by_freq else "sparse"
            return f"has {name}=True, which is of gradients of whole rows; set it to False before build()"
        return None

    def refuses_format(self, format):
        if isinstance(format, Format) and whole_rows(format):
            return None
        return f"an embedding reads whole rows, which '{format}' does not have together; take Csr, Ell, Bsr, BlockedEll"

    def direct(self, weight, module, ids):
        if ids.dtype not in (torch.int32, torch.int64):
            raise RuntimeError(f"{module._title}: indices are int32 or int64, not {ids.dtype}")
        flat = ids.reshape(-1).long()
        if flat.numel() and not torch.compiler.is_compiling() and not flat.is_cuda:
            _require_inside(flat, weight.shape[0], module._title)
        rows = _rows(weight, flat)
        if module.padding_idx is not None:
            rows = torch.where((flat == module.padding_idx)[:, None], rows.detach(), rows)
        return rows.reshape(*ids.shape, weight.shape[1])

    def eager(self, weight, module, ids):
        return F.embedding(ids, weight, module.padding_idx)


def whole_rows(format: Format) -> bool:
    """Is each row (of blocks) one stretch of positions, and dense inside of a block?"""
    format, like = without_widths(format), Bsr(*format.tile) if format.tile else Csr()
    outer, inner, *rest = format.levels
    same = lambda n: format.levels[n] == like.levels[n] or (n == 1 and isinstance(inner.extent, Fixed))
    if len(format.levels) != len(like.levels) or not all(map(same, range(len(like.levels)))):
        return False
    return inner.digits == like.levels[1].digits and inner.coordinate == like.levels[1].coordinate


def _require_inside(ids, count: int, title: str) -> None:
    low, high = (int(each) for each in torch.aminmax(ids))
    if low < 0 or high >= count:
        raise IndexError(f"{title}: index {low if low < 0 else high} is not in a table of {count} rows")


def _rows(weight, ids: torch.Tensor) -> torch.Tensor:
    """[ids, columns]: the rows of a table, with zeros where nothing is stored."""
    b0, b1 = weight.values.shape[1:] or (1, 1)
    values, crd = weight.values.reshape(-1, b0, b1), weight.array("crd1").reshape(-1).long()
    group, inside = ids // b0, ids % b0
    token, slot = _slots(weight, group)
    found, column = values[slot, inside[token]], crd[slot]
    stored = (column >= 0)[:, None]
    if weight.valid is not None:
        stored = stored & weight.valid.reshape(-1, b0, b1)[slot, inside[token]]
    found = torch.where(stored, found, 0)
    columns = column.clamp_min(0)[:, None] * b1 + torch.arange(b1, device=ids.device)
    whole = -(-weight.shape[1] // b1) * b1
    rows = found.new_zeros(len(ids), whole).index_put((token[:, None], columns), found, accumulate=True)
    return rows[:, : weight.shape[1]]


def _slots(weight, group: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the stored elements of these rows (of blocks): which row asked, and the position."""
    asked = torch.arange(len(group), device=group.device)
    if "pos1" not in weight.format.buffers:  # as many in every row
        width = weight.array("crd1").shape[-1]
        slot = group[:, None] * width + torch.arange(width, device=group.device)
        return asked.repeat_interleave(width), slot.reshape(-1)
    first = weight.array("pos1")[group].long()
    count = weight.array("pos1")[group + 1].long() - first
    token = asked.repeat_interleave(count)
    begin = (count.cumsum(0) - count)[token]
    return token, first[token] + torch.arange(len(token), device=group.device) - begin

# SPDX-License-Identifier: Apache-2.0
"""Keys and values in pages of a cache, as the sequences that a table makes of them."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..patterns.capturing import is_captured


def sequences(k, v, table, key_padding, batch: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """k and v [B, Hk, Sk, D], and the key padding, of pages [pages, page, Hk, D] and their numbers [B, n].

    Sk is n * page. What has no page (-1), and what bool padding leaves out, is 0, whatever the cache holds there; in a
    graph, where nobody can look, so is what a number beyond the last page names.
    """
    _check(k, v, table, batch)
    page, numbers = k.shape[1], table.long()
    there = ((numbers >= 0) & (numbers < len(k))).repeat_interleave(page, 1)
    kept = there
    if key_padding is None:
        whole = not torch.compiler.is_compiling() and table.device.type == "cpu" and bool(there.all())
        padding = None if whole else there
    else:
        _check_padding(key_padding, there)
        if key_padding.is_floating_point():
            padding = torch.where(there, key_padding, -torch.inf)
        else:
            padding = kept = there & (key_padding != 0)
    k, v = (_gathered(x, numbers, kept) for x in (k, v))
    return k, v, padding


def _gathered(pages: torch.Tensor, numbers: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    if not len(pages):
        pages = pages.new_zeros(1, *pages.shape[1:])
    found = pages[numbers.clamp(0, len(pages) - 1)].flatten(1, 2)  # [B, Sk, Hk, D]
    return torch.where(kept[..., None, None], found, 0).transpose(1, 2)


def _check(k, v, table, batch: int) -> None:
    for name, x in (("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor) or x.ndim != 4:
            raise DataError(f"attention: with page_table {name} is a tensor of pages [pages, page, Hk, D]")
    if k.shape[:3] != v.shape[:3]:
        raise DataError(f"attention: pages of k {list(k.shape)} and v {list(v.shape)} do not fit: [pages, page, Hk, D]")
    if not isinstance(table, torch.Tensor) or table.dtype not in (torch.int32, torch.int64) or table.ndim != 2:
        raise DataError("page_table: an int32 or int64 tensor [B, n] is needed, the page of each part of a sequence")
    if table.shape[0] != batch or table.device != k.device:
        said = f"{list(table.shape)} on {table.device}"
        raise DataError(f"page_table: [B, n] of {batch} batches on {k.device} is needed, not {said}")
    records = torch.compiler.is_compiling() or is_captured(table.device)
    if not records and bool(((table < -1) | (table >= k.shape[0])).any()):
        raise DataError(f"page_table: names pages from 0 to {k.shape[0] - 1}, and -1 for none")


def _check_padding(padding, there: torch.Tensor) -> None:
    if not isinstance(padding, torch.Tensor) or padding.shape != there.shape:
        raise DataError(f"key_padding: a tensor [B, n * page] = {list(there.shape)} is needed with page_table")

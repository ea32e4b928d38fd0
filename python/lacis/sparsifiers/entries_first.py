# SPDX-License-Identifier: Apache-2.0
"""A choice among what is stored, filled up with empty places where it is too few."""

from __future__ import annotations

import torch


def entries_first(view, kept: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`Sparsifier.change` of `kept` (bool, `min(count, view.count)` of them are true): the first empty places come too
    where fewer are stored than `count`."""
    keep = indices(kept, min(count, view.count))
    return keep, view.empty()[: max(count - view.count, 0)]


def indices(kept: torch.Tensor, count: int) -> torch.Tensor:
    """int64 [count]: where it is true, which is so in `count` places; the device is not waited for."""
    if kept.device.type == "cpu":
        return kept.nonzero().reshape(-1)
    return kept.nonzero_static(size=count).reshape(-1)

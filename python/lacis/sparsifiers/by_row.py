# SPDX-License-Identifier: Apache-2.0
"""Choosing the largest scores of each row apart."""

from __future__ import annotations

import torch

from ..errors import DataError

PER = ("tensor", "row")


def check_per(per) -> str:
    """Raise `DataError` unless it says over what a share is counted."""
    if per not in PER:
        raise DataError(f"per is 'tensor' or 'row', not {per!r}")
    return per


def scores_of(tensor: torch.Tensor) -> torch.Tensor:
    """Numbers to sort by: NaN is as large as infinity, half types are float32."""
    wide = tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
    return wide.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf) if wide.is_floating_point() else wide


def keep_largest_of_rows(scores: torch.Tensor, count: int) -> torch.Tensor:
    """bool of the shape of `scores` [rows, columns]: the `count` largest of each row; of equal ones the first.

    >>> keep_largest_of_rows(torch.tensor([[1.0, 3.0, 1.0], [0.0, 0.0, 5.0]]), 2).int().tolist()
    [[1, 1, 0], [1, 0, 1]]
    """
    kept = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
    best = torch.sort(scores_of(scores), dim=1, descending=True, stable=True).indices[:, : max(count, 0)]
    return kept.scatter_(1, best, True)


def counted(groups: torch.Tensor, number: int) -> torch.Tensor:
    """int64 [number]: how often each is there; unlike `bincount` it waits for no GPU."""
    return torch.zeros(number, dtype=torch.int64, device=groups.device).scatter_add_(0, groups, torch.ones_like(groups))


def keep_largest_of_groups(scores: torch.Tensor, groups: torch.Tensor, quota: torch.Tensor) -> torch.Tensor:
    """bool [n]: of the scores of each group as many as its `quota`, the largest; of equal ones the first.

    `groups` int64 [n] ascending says whose a score is, `quota` int64 has a number for each.

    >>> keep_largest_of_groups(torch.tensor([1, 2, 3, 4]), torch.tensor([0, 0, 0, 1]), torch.tensor([2, 1])).tolist()
    [False, True, True, True]
    """
    order = torch.sort(scores_of(scores), descending=True, stable=True).indices
    order = order[torch.sort(groups[order], stable=True).indices]
    counts = counted(groups, len(quota))
    rank = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[groups]
    kept = torch.zeros(len(order), dtype=torch.bool, device=order.device)
    return kept.index_put_((order,), rank < quota[groups])

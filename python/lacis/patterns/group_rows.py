# SPDX-License-Identifier: Apache-2.0
"""Rows that have much in common, brought together."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .transforms import one_or_several

# How it is done on a GPU without the host; the runtime, which compiles kernels, puts it here.
on_device: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None
_DEVICE = "cuda"
MOST = 4096
"""More rows keep their order: each is tried for each place."""


def group_rows(present: torch.Tensor, panels: int) -> torch.Tensor:
    """An order of the rows of bool [rows, steps] in which those of a panel have many steps in common; int64 [rows].

    Of n rows the first, ..., n-th go to panel `0 * panels // n`, ..., `(n - 1) * panels // n`. A panel begins with the
    row of the most steps; then comes the one that shares the most with those before, less half of those that it adds,
    the first of equals. More than `MOST` rows keep their order. (Rows reordered by what they share: Jiang, Hong,
    Agrawal, PPoPP 2020.)

        >>> group_rows(torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0], [0, 0, 0, 1]]).bool(), 2).tolist()
        [2, 0, 1, 3]
    """
    count, device = len(present), present.device
    if count > MOST:
        return torch.arange(count, device=device)
    panel = torch.arange(count, device=device) * panels // max(count, 1)
    begins = panel.diff(prepend=panel.new_full((1,), -1))
    one = lambda present: _group_rows(present[None], begins)[0]
    return one_or_several(present, one, lambda several: _group_rows(several, begins))


def _group_rows(present: torch.Tensor, begins: torch.Tensor) -> torch.Tensor:
    """int64 [several, rows], for bool [several, rows, steps], where `begins` is 1 at the first row of each panel."""
    if present.device.type == _DEVICE and on_device is not None and present.numel():
        return on_device(_words(present), begins.int()).long()
    return torch.stack([_one_by_one(each, begins.tolist()) for each in present])


def _one_by_one(present: torch.Tensor, begins: list[int]) -> torch.Tensor:
    weight = present.float()
    size = weight.sum(1)
    worth, order, covered = torch.stack([size, -size]), [], weight.new_zeros(present.shape[1])
    for begin in begins:
        score = worth[0] if begin else torch.addmv(worth[1], weight, covered, alpha=3.0)
        chosen = int(score.argmax())
        worth[:, chosen] = -torch.inf
        covered = weight[chosen] if begin else torch.maximum(covered, weight[chosen])
        order.append(chosen)
    return torch.tensor(order, dtype=torch.int64).to(present.device)


def _words(present: torch.Tensor) -> torch.Tensor:
    """The bits of bool [..., columns] in words of 32, the first the lowest; int32 [..., words]."""
    bits = torch.nn.functional.pad(present, (0, -present.shape[-1] % 32)).unflatten(-1, (-1, 32)).int()
    return (bits << torch.arange(32, dtype=torch.int32, device=bits.device)).sum(-1, dtype=torch.int32)

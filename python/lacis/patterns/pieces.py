# SPDX-License-Identifier: Apache-2.0
"""Long panels cut, so that few tiles of the dense axis keep all workers busy: who sums up which part, and the sums.

With m tiles a worker's even share is m times the cost of all panels by the number of workers. A panel that costs half
as much again, or more, is cut into parts of about that share, of at least eight steps. Sums of parts are kept in slots;
those of one panel and tile follow each other. There are never more than twice as many as workers.
"""

from __future__ import annotations

import torch

from .balance import by_list, group_items, spread
from .hand_out import hand_out

SHORTEST = 8
"""Steps that a part has at the least: each costs the bytes of its sum."""


def cut_lists(
    steps: torch.Tensor, cost: torch.Tensor, *, fixed: float, workers: int, raster: int, groups: int, cut: int
) -> dict[str, torch.Tensor]:
    """The lists of `group_lists`, and behind them those of m = 1, ..., `cut` tiles in all, whose long panels are cut.

    `steps` int64 and `cost` float [panels] are those of each panel, of which `fixed` is there whatever the steps.
    Returns `pos2` int32 [(groups * raster + cut) * workers + 1], and int32 `crd2` (panel), `crd3` (tile within the
    group), `crd4` (first step), `crd5` (steps) and `crd6` (slot of the sum, -1 of a whole panel).

        >>> steps = torch.tensor([32, 1])
        >>> lists = cut_lists(steps, steps.double(), fixed=0.0, workers=2, raster=1, groups=1, cut=1)
        >>> lists["pos2"].tolist(), *(lists[f"crd{n}"].tolist()[2:5] for n in (2, 4, 5, 6))
        ([0, 1, 2, 4, 5], [0, 1, 0], [0, 0, 16], [16, 1, 16], [0, -1, 1])
    """
    number, panel, tile = group_items(cost, workers=workers, raster=raster, groups=groups)
    none = torch.zeros_like(panel)
    whole = [number, panel, tile, none, steps[panel], none - 1]
    if len(steps) == 0:
        return _listed(whole, (groups * raster + cut) * workers)
    number, *rest = _pieces(steps, cost, fixed=fixed, workers=workers, cut=cut)
    found = [torch.where(number < 0, -1, groups * raster * workers + number), *rest]
    return _listed([torch.cat(pair) for pair in zip(whole, found)], (groups * raster + cut) * workers)


def sum_lists(steps: torch.Tensor, cost: torch.Tensor, *, workers: int, cut: int) -> dict[str, torch.Tensor]:
    """The panels that `cut_lists` cuts, for m = 1, ..., `cut` tiles, each of another worker.

    Returns `pos2` int32 [cut * workers + 1], and int32 `crd2` (panel), `crd3` (tile), `crd4` (first slot) and `crd5`
    (number of parts).

        >>> lists = sum_lists(torch.tensor([32, 1]), torch.tensor([32.0, 1.0]), workers=2, cut=1)
        >>> lists["pos2"].tolist(), *(lists[f"crd{n}"].tolist()[:1] for n in (2, 3, 4, 5))
        ([0, 1, 1], [0], [0], [0], [2])
    """
    parts, begin = (each[:, :, None] for each in _parts(steps, cost, workers, cut))
    tiles, panel, tile = _numbers(steps, len(steps), cut)
    is_cut = (parts > 1) & (tile < tiles)
    turn = is_cut.flatten(1).cumsum(1).view_as(is_cut) - 1
    number = torch.where(is_cut, (tiles - 1) * workers + turn % workers, -1)
    return _listed([number, panel, tile, tiles * begin + tile * parts, parts], cut * workers)


def _numbers(steps: torch.Tensor, items: int, cut: int):
    """How many tiles there are, the item, and the tile: of [cut, items, cut] an axis each."""
    count = lambda size, axis: torch.arange(size, device=steps.device).view([-1 if n == axis else 1 for n in range(3)])
    return count(cut, 0) + 1, count(items, 1), count(cut, 2)


def _listed(items: list[torch.Tensor], lists: int) -> dict[str, torch.Tensor]:
    """Arrays of so many lists from items: the list of each (-1 of none), and what it says."""
    number, *columns = (each.reshape(-1) for each in torch.broadcast_tensors(*items))
    at, pos = by_list(number, lists)
    return {"pos2": pos} | {f"crd{n + 2}": column[at].int() for n, column in enumerate(columns)}


def _parts(steps: torch.Tensor, cost: torch.Tensor, workers: int, cut: int):
    """How many parts each panel has with 1, ..., `cut` tiles, and how many those of cut panels before it have; int64
    [cut, panels].
    """
    tiles = torch.arange(1, cut + 1, device=steps.device)[:, None]
    share = (tiles * cost.sum() / workers).clamp(min=torch.finfo(torch.float32).tiny)
    parts = torch.minimum((cost / share).round().long(), steps // SHORTEST).clamp(min=1)
    kept = torch.where(parts > 1, parts, 0)
    return parts, kept.cumsum(1) - kept


def _pieces(steps: torch.Tensor, cost: torch.Tensor, *, fixed: float, workers: int, cut: int) -> list[torch.Tensor]:
    """For each part and tile the list (-1: none), panel, tile, first step, steps and slot; int64, all in a row."""
    parts, begin = _parts(steps, cost, workers, cut)
    panel, number, there = spread(parts, len(steps) + 2 * workers)
    count, length = parts.gather(1, panel), steps[panel]
    first = length * number // count
    own = length * (number + 1) // count - first
    weight = torch.where(there, fixed + (cost[panel] - fixed) * own / length.clamp(min=1), -1.0)
    order = torch.argsort(-weight, dim=1, stable=True)
    worker = hand_out(weight.gather(1, order), workers=workers, raster=cut)[0].long()
    columns = (panel, first, own, count, number, begin.gather(1, panel))
    panel, first, own, count, number, begin = (column.gather(1, order)[:, :, None] for column in columns)
    tiles, _, tile = _numbers(steps, order.shape[1], cut)
    slot = torch.where(count > 1, tiles * begin + tile * count + number, -1)
    lists = torch.where(worker < 0, -1, (tiles - 1) * workers + worker)
    return [each.reshape(-1) for each in torch.broadcast_tensors(lists, panel, tile, first, own, slot)]

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
    found = [[number, panel, tile, none, steps[panel], none - 1]]
    for tiles in range(1, cut + 1):
        number, *rest = _pieces(steps, cost, fixed=fixed, workers=workers, tiles=tiles)
        found.append([torch.where(number < 0, -1, (groups * raster + tiles - 1) * workers + number), *rest])
    return _listed(found, (groups * raster + cut) * workers)


def sum_lists(steps: torch.Tensor, cost: torch.Tensor, *, workers: int, cut: int) -> dict[str, torch.Tensor]:
    """The panels that `cut_lists` cuts, for m = 1, ..., `cut` tiles, each of another worker.

    Returns `pos2` int32 [cut * workers + 1], and int32 `crd2` (panel), `crd3` (tile), `crd4` (first slot) and `crd5`
    (number of parts).

        >>> lists = sum_lists(torch.tensor([32, 1]), torch.tensor([32.0, 1.0]), workers=2, cut=1)
        >>> lists["pos2"].tolist(), *(lists[f"crd{n}"].tolist()[:1] for n in (2, 3, 4, 5))
        ([0, 1, 1], [0], [0], [0], [2])
    """
    found = []
    for tiles in range(1, cut + 1):
        parts, begin = _parts(steps, cost, workers, tiles)
        panel = torch.arange(len(steps), device=steps.device).repeat_interleave(tiles)
        tile = torch.arange(tiles, device=steps.device).repeat(len(steps))
        is_cut = parts[panel] > 1
        turn = is_cut.cumsum(0) - 1
        number = torch.where(is_cut, (tiles - 1) * workers + turn % workers, -1)
        found.append([number, panel, tile, tiles * begin[panel] + tile * parts[panel], parts[panel]])
    return _listed(found, cut * workers)


def _listed(found: list[list[torch.Tensor]], lists: int) -> dict[str, torch.Tensor]:
    """Arrays of so many lists from items: in each of `found` the list (-1 of none) and what it says, item by item."""
    number, *columns = (torch.cat(parts) for parts in zip(*found))
    at, pos = by_list(number, lists)
    return {"pos2": pos} | {f"crd{n + 2}": column[at].int() for n, column in enumerate(columns)}


def _parts(steps: torch.Tensor, cost: torch.Tensor, workers: int, tiles: int):
    """How many parts each panel has, and how many those of cut panels before it have; int64 [panels]."""
    share = (tiles * cost.sum() / workers).clamp(min=torch.finfo(torch.float32).tiny)
    parts = torch.minimum((cost / share).round().long(), steps // SHORTEST).clamp(min=1)
    kept = torch.where(parts > 1, parts, 0)
    return parts, kept.cumsum(0) - kept


def _pieces(steps: torch.Tensor, cost: torch.Tensor, *, fixed: float, workers: int, tiles: int) -> list[torch.Tensor]:
    """For each part and tile the worker (-1: none), panel, tile, first step, steps and slot; int64 [parts * tiles]."""
    if len(steps) == 0:
        return [steps] * 6
    parts, begin = _parts(steps, cost, workers, tiles)
    panel, number, there = spread(parts, len(steps) + 2 * workers)
    count = parts[panel]
    first = steps[panel] * number // count
    length = steps[panel] * (number + 1) // count - first
    weight = fixed + (cost[panel] - fixed) * length / steps[panel].clamp(min=1)
    order = torch.argsort(-torch.where(there, weight, -1.0), stable=True)
    worker = hand_out(torch.where(there, weight, -1.0)[order], workers=workers, raster=tiles)[0, tiles - 1]
    columns = [column[order][:, None].expand(-1, tiles) for column in (panel, first, length, count, number)]
    panel, first, length, count, number = columns
    tile = torch.arange(tiles, device=steps.device).expand_as(panel)
    slot = torch.where(count > 1, tiles * begin[panel] + tile * count + number, -1)
    return [column.reshape(-1) for column in (worker.long(), panel, tile, first, length, slot)]

# SPDX-License-Identifier: Apache-2.0
"""Long panels cut, so that few tiles of the dense axis keep all workers busy: who sums up which part.

With m tiles a worker's even share is m times the cost of all panels by the number of workers. Panels are cut into
parts of about some multiple of it, of at least eight steps: all that are long enough, or the longest only. Which
multiple, and which panels, is tried: the lists of each way are made, and those taken that end first. Sums of parts are
kept in slots; those of one panel and tile follow each other. There are never more than twice as many as workers.
"""

from __future__ import annotations

import itertools

import torch

from .balance import by_list, group_items, spread, sum_of_costs
from .constants import on_device
from .hand_out import hand_out

SHORTEST = 8
"""Steps that a part has at the least: each costs the bytes of its sum."""
LENGTHS = (torch.inf, 1.75, 1.375, 1.125, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25)
"""What a part costs, in even shares of a worker."""
LONG = (0.0, 2.0)
"""What a panel that is cut costs more than, in times of their mean."""


def cut_lists(
    steps: torch.Tensor,
    cost: torch.Tensor,
    *,
    fixed: float,
    kept: float,
    adding: tuple[float, float, float],
    workers: int,
    raster: int,
    groups: int,
    cut: int,
) -> dict[str, torch.Tensor]:
    """The lists of `group_lists`, and behind them those of m = 1, ..., `cut` tiles in all, whose long panels are cut.

    `steps` int64 and `cost` float [panels] are those of each panel, of which `fixed` is there whatever the steps; a
    part costs `kept` besides. `adding` are the microseconds that adding up takes, of them for each part of the panel
    with the most, and for each of all parts. Returns `pos2` int32 [(groups * raster + cut) * workers + 1], and int32
    `crd2` (panel), `crd3` (tile within the group), `crd4` (first step), `crd5` (steps), `crd6` (number of the part),
    `crd7` (how many there are) and `crd8` (slot of the sum, -1 of a whole panel).

        >>> steps = torch.tensor([32, 1])
        >>> given = {"workers": 2, "raster": 1, "groups": 1, "cut": 1}
        >>> lists = cut_lists(steps, steps.double(), fixed=0.0, kept=1.0, adding=(4.0, 1.0, 0.08), **given)
        >>> lists["pos2"].tolist(), *(lists[f"crd{n}"].tolist()[2:5] for n in (2, 4, 5, 6, 7, 8))
        ([0, 1, 2, 4, 5], [0, 1, 0], [0, 0, 16], [16, 1, 16], [0, 0, 1], [2, 1, 2], [0, -1, 1])
    """
    number, panel, tile = group_items(cost, workers=workers, raster=raster, groups=groups)
    none = torch.zeros_like(panel)
    whole = [number, panel, tile, none, steps[panel], none, none + 1, none - 1]
    given = {"lists": (groups * raster + cut) * workers, "raster": raster, "turns": -(-cut // raster)}
    if len(steps) == 0:
        none = steps.new_zeros(2 * workers * cut**2)  # as many items as without panels there may be
        return _listed([torch.cat([column, none - 1]) for column in whole], **given)
    number, *rest = _pieces(steps, cost, fixed=fixed, kept=kept, adding=adding, workers=workers, cut=cut)
    found = [torch.where(number < 0, -1, groups * raster * workers + number), *rest]
    return _listed([torch.cat(pair) for pair in zip(whole, found)], **given)


def _listed(items: list[torch.Tensor], *, lists: int, raster: int, turns: int) -> dict[str, torch.Tensor]:
    """Arrays of so many lists from items: the list of each (-1 of none), and what it says: panel, tile, and more.

    A list has `raster` tiles first, then as many others, in so many turns: workers read the same ones at a time.
    """
    number, *columns = items
    at, pos = by_list(torch.where(number < 0, -1, number * turns + columns[1] // raster), lists * turns)
    return {"pos2": pos[::turns].contiguous()} | {f"crd{n + 2}": column[at].int() for n, column in enumerate(columns)}


def _ways(steps: torch.Tensor, cost: torch.Tensor, workers: int, cut: int) -> torch.Tensor:
    """How many parts each panel has, for each way to cut them and 1, ..., `cut` tiles; int64 [ways, cut, panels].

    The first way cuts nothing, nor does one whose parts would be more than twice as many as workers.
    """
    ways = on_device(tuple(itertools.product(LENGTHS, LONG)), cost.dtype, cost.device)
    length, long = ways[:, :, None, None].unbind(1)
    tiles = torch.arange(1, cut + 1, device=steps.device)[:, None]
    total = sum_of_costs(cost)
    share = (tiles * total / workers).clamp(min=torch.finfo(torch.float32).tiny)
    parts = torch.minimum((cost / (share * length)).round().long(), steps // SHORTEST).clamp(min=1)
    parts = torch.where(cost > long * (total / len(cost)), parts, 1)
    return torch.where(tiles * _kept(parts).sum(2, keepdim=True) <= 2 * workers, parts, 1)


def _kept(parts: torch.Tensor) -> torch.Tensor:
    """The parts whose sums are kept: those of panels that are cut."""
    return torch.where(parts > 1, parts, 0)


def _pieces(
    steps: torch.Tensor, cost: torch.Tensor, *, fixed: float, kept: float, adding: tuple, workers: int, cut: int
) -> list[torch.Tensor]:
    """For each part and tile the list (-1: none), panel, tile, first step, steps, number, parts and slot; int64."""
    parts = _ways(steps, cost, workers, cut)
    panel, number, there = spread(parts, len(steps) + 2 * workers)
    count, length = parts.gather(2, panel), steps[panel]
    first = length * number // count
    own = length * (number + 1) // count - first
    weight = fixed + (cost[panel] - fixed) * own / length.clamp(min=1) + torch.where(count > 1, kept, 0.0)
    weight, order = torch.sort(torch.where(there, weight, -1.0), dim=2, descending=True, stable=True)
    tiles = list(range(1, cut + 1)) * len(parts)
    worker = hand_out(weight.flatten(0, 1), workers=workers, tiles=tiles).view(*order.shape, cut).long()
    best = _first_to_end(weight, worker, parts, workers, adding)[None, :, None]
    slot = (_kept(parts).cumsum(2) - _kept(parts)).gather(2, panel)
    columns = (each.take_along_dim(order, 2) for each in (panel, first, own, number, count, slot))
    panel, first, own, number, count, slot = (each.take_along_dim(best, 0)[0, :, :, None] for each in columns)
    worker = worker.take_along_dim(best[..., None], 0)[0]
    tile = torch.arange(cut, device=steps.device)
    tiles = tile[:, None, None] + 1
    slot = torch.where(count > 1, tiles * slot + tile * count + number, -1)
    lists = torch.where(worker < 0, -1, (tiles - 1) * workers + worker)
    found = torch.broadcast_tensors(lists, panel, tile, first, own, number, count, slot)
    return [each.reshape(-1) for each in found]


def _first_to_end(
    weight: torch.Tensor, worker: torch.Tensor, parts: torch.Tensor, workers: int, adding: tuple
) -> torch.Tensor:
    """The way that ends first, for each number of tiles, the first of equals; int64 [cut].

    That is when the last worker has done what it was given, and the parts are added up. Times are added up as whole
    numbers, so that their order does not matter.
    """
    took = torch.where(worker < 0, 0, (weight * 2.0**20).long()[..., None]).flatten(2)
    load = took.new_zeros(*took.shape[:2], workers).scatter_add_(2, worker.clamp(min=0).flatten(2), took)
    tiles = torch.arange(1, parts.shape[1] + 1, device=parts.device)
    most, moved = _kept(parts).amax(2), _kept(parts).sum(2) * tiles
    started, added, each = adding
    time = torch.where(most > 0, started + most * added + moved * each, 0.0)
    return (load.amax(2) + (time * 2.0**20).long()).argmin(0)

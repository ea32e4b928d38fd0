# SPDX-License-Identifier: Apache-2.0
"""Shares whose sums are cut, so that a few of them keep all workers busy: who sums up which part.

The longest are whole, as many as come out even for all workers. Sums of the others are cut where that brings the
last worker to its end earlier, though a part costs the bytes of its sum. Sums of parts are kept in slots, of which
there are never more than twice as many as workers.
"""

from __future__ import annotations

import torch

from .balance import by_list, shares_of, spread
from .hand_out import hand_out

KEPT = 1 / 16
"""What it costs to keep a part and to add it up, in times of a mean share's whole sum."""


def part_lists(
    counts: torch.Tensor, cost: torch.Tensor, *, by: int, workers: int, most: int, parts: int
) -> dict[str, torch.Tensor]:
    """The lists of `share_lists`, and behind them those of shares whose sums are cut into up to `parts`.

    Returns `pos2` int32 [2 * workers + 1], and int32 `crd2` (panel), `crd3` (share), `crd4` (number of the part),
    `crd5` (how many parts the sum has) and `crd6` (slot of the part's sum, -1 of a whole one).

        >>> counts, cost = torch.tensor([1]), torch.tensor([0.0, 1.0])
        >>> lists = part_lists(counts, cost, by=1, workers=2, most=1, parts=4)
        >>> lists["pos2"].tolist(), *(lists[f"crd{n}"].tolist()[:3] for n in (4, 5, 6))
        ([0, 1, 1, 2, 3], [0, 0, 1], [1, 2, 2], [-1, 0, 1])
    """
    panel, share, weight = _sorted_shares(counts, cost, by, most)
    number = _numbers(weight, workers, parts)
    item, part, there = spread(number, len(number) + 2 * workers)
    own = torch.where(there, weight[item] / number[item].clamp(min=1), -1.0)
    kept = torch.where(number > 1, number, 0)
    slot = torch.where(number[item] > 1, (kept.cumsum(0) - kept)[item] + part, -1)
    whole = hand_out(torch.where(number > 0, weight, -1.0), workers=workers).reshape(-1)
    cut = hand_out(own, workers=workers).reshape(-1)
    none = torch.zeros_like(panel)
    found = zip((panel, share, none, none + 1, none - 1), (panel[item], share[item], part, number[item], slot))
    at, pos = by_list(torch.cat([whole, torch.where(cut < 0, -1, workers + cut)]), 2 * workers)
    columns = [torch.cat(pair)[at].int() for pair in found]
    return {"pos2": pos} | {f"crd{n + 2}": column for n, column in enumerate(columns)}


def _sorted_shares(counts: torch.Tensor, cost: torch.Tensor, by: int, most: int):
    """Panel, number and cost of each share, the heaviest first, 0 where there is none; more than there can be."""
    counts = torch.cat([counts, counts.new_zeros(1)])
    panel, share, weight = shares_of(counts, cost, by, most + by)
    weight, order = torch.sort(weight.clamp(min=0.0), descending=True, stable=True)
    return panel[order], share[order], weight


def _numbers(weight: torch.Tensor, workers: int, parts: int):
    """How many parts the sum of each share has, 0 where there is none; int64 [shares].

    The shares that do not come out even for all workers have 1, ..., `parts`: as many as end the earliest.
    """
    there = weight > 0
    shares = there.sum()
    is_rest = there & (torch.arange(len(weight), device=weight.device) >= shares // workers * workers)
    limit = torch.arange(1, parts + 1, device=weight.device)
    taken = is_rest.sum() * limit
    length = torch.where(is_rest, weight, 0.0).amax() / limit + KEPT * weight.sum() / shares.clamp(min=1) * (limit > 1)
    end = length * ((taken + workers - 1) // workers)
    best = limit.gather(0, torch.where((limit > 1) & (taken > 2 * workers), torch.inf, end).argmin(0, keepdim=True))
    return torch.where(is_rest, best, there.long())

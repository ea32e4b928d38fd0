# SPDX-License-Identifier: Apache-2.0
"""Shares whose sums are cut, so that a few of them keep all workers busy: who sums up which part.

The longest are whole, as many as come out even for all workers. Sums of the others are cut where that brings the
last worker to its end earlier, though a part costs the bytes of its sum. Sums of parts are kept in slots, of which
there are never more than twice as many as workers.
"""

from __future__ import annotations

import torch

from .balance import by_list, even_shares, gathered_cost, longest_shares, shares_of, spread
from .hand_out import hand_out


def part_lists(
    counts: torch.Tensor, cost: torch.Tensor, *, by: int, workers: int, most: int, parts: int, kept: int
) -> dict[str, torch.Tensor]:
    """The lists of `share_lists`, and behind them those of shares whose sums are cut into up to `parts`.

    To keep a part and to add it up costs the `kept`-th part of a mean share's whole sum.
    Returns `pos2` int32 [2 * workers + 1], and int32 `crd2` (panel), `crd3` (share), `crd4` (number of the part),
    `crd5` (how many parts the sum has) and `crd6` (slot of the part's sum, -1 of a whole one).

        >>> counts, cost = torch.tensor([1]), torch.tensor([0.0, 1.0])
        >>> lists = part_lists(counts, cost, by=1, workers=2, most=1, parts=4, kept=16)
        >>> lists["pos2"].tolist(), *(lists[f"crd{n}"].tolist()[:3] for n in (4, 5, 6))
        ([0, 1, 1, 2, 3], [0, 0, 1], [1, 2, 2], [-1, 0, 1])
    """
    shares, weight = _sorted_shares(counts, cost, by, most)
    return _lists(shares, weight, shares, weight, workers, parts, kept)


def gathered_part_lists(
    positions: torch.Tensor,
    columns: torch.Tensor,
    *,
    by: int,
    within: int,
    workers: int,
    segment: int,
    parts: int,
    kept: int,
) -> dict[str, torch.Tensor]:
    """The lists of `gathered_shares`, and behind them those of shares whose sums are cut into up to `parts`.

    Where none are, these are the same. `kept` is as in `part_lists`. Returns `pos2` int32 [2 * workers + 1], and int32 `crd2` (panel), `crd3` (first
    position), `crd4` (number of positions), `crd5` (number of the part), `crd6` (how many parts the sum has) and `crd7`
    (slot of the part's sum, -1 of a whole one).

        >>> positions, columns = torch.tensor([0, 2]), torch.tensor([0, 16])
        >>> lists = gathered_part_lists(positions, columns, by=2, within=64, workers=2, segment=8, parts=4, kept=16)
        >>> lists["pos2"].tolist(), *(lists[f"crd{n}"].tolist()[:4] for n in (3, 4, 5, 6, 7))
        ([0, 1, 2, 3, 4], [0, 1, 0, 0], [1, 1, 2, 2], [0, 0, 0, 1], [1, 1, 2, 2], [-1, -1, 0, 1])
    """
    shares = longest_shares(positions, columns, by=by, within=within, workers=workers)
    even = even_shares(*shares, by=by, workers=workers)
    weight = gathered_cost(shares[2], segment).clamp(min=0.0)
    return _lists(even, gathered_cost(even[2], segment), shares, weight, workers, parts, kept)


def _sorted_shares(counts: torch.Tensor, cost: torch.Tensor, by: int, most: int):
    """Panel and number, and cost, of each share, the heaviest first, 0 where there is none; more than there can be."""
    counts = torch.cat([counts, counts.new_zeros(1)])
    panel, share, weight = shares_of(counts, cost, by, most + by)
    weight, order = torch.sort(weight.clamp(min=0.0), descending=True, stable=True)
    return [panel[order], share[order]], weight


def _lists(
    plain: list[torch.Tensor],
    plain_weight: torch.Tensor,
    shares: list[torch.Tensor],
    weight: torch.Tensor,
    workers: int,
    parts: int,
    share: int,
) -> dict[str, torch.Tensor]:
    """Two lists for each worker: what `plain` says; and parts of `shares`, which are sorted, or the same again."""
    order = torch.argsort(-plain_weight, stable=True)
    plain = [column[order] for column in plain]
    whole = hand_out(torch.where(plain_weight > 0, plain_weight, -1.0)[order], workers=workers).reshape(-1)
    number = _numbers(weight, workers, parts, share)
    item, part, there = spread(number, len(number) + 2 * workers)
    kept = torch.where(number > 1, number, 0)
    slot = torch.where(number[item] > 1, (kept.cumsum(0) - kept)[item] + part, -1)
    own = torch.where(there, weight[item] / number[item].clamp(min=1), -1.0)
    cut, is_cut = hand_out(own, workers=workers).reshape(-1), (number > 1).any()
    again = torch.where(is_cut | (whole < 0), -1, workers + whole)
    at, pos = by_list(torch.cat([whole, again, torch.where(is_cut & (cut >= 0), workers + cut, -1)]), 2 * workers)
    none = torch.zeros_like(plain[0])
    first, then = [*plain, none, none + 1, none - 1], [*(column[item] for column in shares), part, number[item], slot]
    columns = (torch.cat([a, a, b])[at].int() for a, b in zip(first, then))
    return {"pos2": pos} | {f"crd{n + 2}": column for n, column in enumerate(columns)}


def _numbers(weight: torch.Tensor, workers: int, parts: int, share: int):
    """How many parts the sum of each share has, 0 where there is none; int64 [shares].

    The shares that do not come out even for all workers have 1, ..., `parts`: as many as end the earliest.
    """
    there = weight > 0
    shares = there.sum()
    is_rest = there & (torch.arange(len(weight), device=weight.device) >= shares // workers * workers)
    limit = torch.arange(1, parts + 1, device=weight.device)
    taken = is_rest.sum() * limit
    length = torch.where(is_rest, weight, 0.0).amax() / limit
    length = length + 1 / share * weight.sum() / shares.clamp(min=1) * (limit > 1)
    end = length * ((taken + workers - 1) // workers)
    best = limit.gather(0, torch.where((limit > 1) & (taken > 2 * workers), torch.inf, end).argmin(0, keepdim=True))
    return torch.where(is_rest, best, there.long())

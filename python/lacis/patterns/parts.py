# SPDX-License-Identifier: Apache-2.0
"""Shares whose sums are cut, so that a few of them keep all workers busy: who sums up which part.

The longest are whole, as many as come out even for all workers. Sums of the others are cut where that brings the
last worker to its end earlier, though a part costs the bytes of its sum. Sums of parts are kept in slots, of which
there are never more than twice as many as workers.
"""

from __future__ import annotations

import torch

from .balance import by_list, even_shares, gathered_cost, longest_shares, shares_of, spread, sum_of_costs
from .constants import counted, on_device
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

    Where none are, these are the same. `kept` is as in `part_lists`, `segment` as in `gathered_shares`. Returns `pos2`
    int32 [2 * workers + 1], and int32 `crd2` (panel), `crd3` (first position), `crd4` (number of positions), `crd5`
    (number of the part), `crd6` (how many parts the sum has) and `crd7` (slot of the part's sum, -1 of a whole one).

        >>> positions, columns = torch.tensor([0, 2]), torch.tensor([0, 16])
        >>> lists = gathered_part_lists(positions, columns, by=2, within=64, workers=2, segment=8, parts=4, kept=16)
        >>> lists["pos2"].tolist(), *(lists[f"crd{n}"].tolist()[:4] for n in (3, 4, 5, 6, 7))
        ([0, 1, 2, 3, 4], [0, 1, 0, 0], [1, 1, 2, 2], [0, 0, 0, 1], [1, 1, 2, 2], [-1, -1, 0, 1])
    """
    shares = longest_shares(positions, columns, by=by, within=within, workers=workers)
    even = even_shares(shares, by=by, workers=workers)
    weight = gathered_cost(shares[2], segment).clamp(min=0.0)
    return _lists(even, gathered_cost(even[2], segment), shares, weight, workers, parts, kept)


def _sorted_shares(counts: torch.Tensor, cost: torch.Tensor, by: int, most: int):
    """Panel and number, and cost, of each share, the heaviest first, 0 where there is none; more than there can be."""
    counts = torch.cat([counts, counts.new_zeros(1)])
    panel, share, weight = shares_of(counts, cost, by, most + by)
    weight, order = torch.sort(weight.clamp(min=0.0), descending=True, stable=True)
    return torch.stack([panel, share])[:, order], weight


def _lists(
    plain: torch.Tensor,
    plain_weight: torch.Tensor,
    shares: torch.Tensor,
    weight: torch.Tensor,
    workers: int,
    parts: int,
    share: int,
) -> dict[str, torch.Tensor]:
    """Two lists for each worker: what `plain` says; and parts of `shares`, which are sorted, or the same again.

    Both are int64 [columns, n].
    """
    plain_weight, order = torch.sort(plain_weight, descending=True, stable=True)
    whole = hand_out(plain_weight.masked_fill(plain_weight <= 0, -1.0), workers=workers).reshape(-1)
    number = _numbers(weight, workers, parts, share)
    item, part, there = spread(number, len(number) + 2 * workers)
    kept = number * (number > 1)
    columns = torch.cat([shares, torch.stack([number, kept.cumsum(0) - kept])])[:, item]
    count, slot = columns[-2:]
    own = (weight[item] / count.clamp(min=1)).masked_fill_(~there, -1.0)
    cut, is_cut = hand_out(own, workers=workers).reshape(-1), (number > 1).any()
    again = torch.where(is_cut, -1, whole)
    cut = torch.where(is_cut, cut, -1)
    given = torch.cat([again, cut])
    given = torch.cat([whole, torch.where(given < 0, given, given + workers)])
    at, pos = by_list(given, 2 * workers)
    none = on_device((0, 1, -1), torch.int64, at.device)[:, None].expand(3, plain.shape[1])
    plain = torch.cat([plain[:, order], none])
    slot = torch.where(count > 1, slot + part, -1)
    columns = torch.cat([plain, plain, torch.cat([columns[:-2], torch.stack([part, count, slot])])], 1)
    # Each begins at a multiple of 16 bytes: a kernel would copy others at each call.
    lines = torch.nn.functional.pad(columns[:, at].int(), (0, -len(at) % 4))[:, : len(at)]
    return {"pos2": pos} | {f"crd{n + 2}": column for n, column in enumerate(lines)}


def _numbers(weight: torch.Tensor, workers: int, parts: int, share: int):
    """How many parts the sum of each share has, 0 where there is none; int64 [shares].

    The shares that do not come out even for all workers have 1, ..., `parts`: as many as end the earliest.
    """
    there = weight > 0
    shares = there.sum()
    is_rest = there & (counted(len(weight), weight.device) >= shares // workers * workers)
    limit = counted(parts + 1, weight.device)[1:]
    taken = is_rest.sum() * limit
    kept = 1 / share * sum_of_costs(weight) / shares.clamp(min=1)
    length = (weight * is_rest).amax() / limit + kept * (limit > 1)
    end = length * ((taken + (workers - 1)) // workers)
    best = end.masked_fill_((limit > 1) & (taken > 2 * workers), torch.inf).argmin() + 1  # limits count from 1
    return torch.where(is_rest, best, there)

# SPDX-License-Identifier: Apache-2.0
"""Work lists: which worker computes which tiles of an output.

The arrays are made on the device of what they are made from, and the host waits for nothing: what depends on numbers
that lie there is as long as it can get, and `pos1` says what counts of it.
"""

from __future__ import annotations

import torch

from .constants import counted, on_device
from .derivation import Cost
from .hand_out import hand_out


def work_lists(cost: torch.Tensor, tiles: int, *, workers: int, raster: int = 8) -> dict[str, torch.Tensor]:
    """Pairs (panel, tile) for each worker, the heaviest panels first to the least loaded worker.

    `cost` is float [panels], the same for each of the `tiles` of the dense axis; `raster` tiles of it are worked on
    together. Returns `pos1` int32 [workers + 1], `crd1` (panel) and `crd2` (tile) int32 [panels * tiles].

        >>> lists = work_lists(torch.tensor([1.0, 3.0]), 2, workers=2)
        >>> lists["pos1"].tolist(), lists["crd1"].tolist(), lists["crd2"].tolist()
        ([0, 2, 4], [1, 0, 1, 0], [0, 0, 1, 1])
    """
    order = torch.argsort(cost, descending=True, stable=True)
    groups = -(-tiles // raster)
    given = hand_out(cost[order], workers=workers, tiles=range(1, raster + 1), groups=groups)
    last = (tiles - 1) % raster
    worker = torch.cat([given[: groups - 1, raster - 1], given[groups - 1 :, last]]) if tiles else given[:, 0]
    at, pos = by_list(worker.reshape(-1), workers)
    at = at[: tiles * len(cost)]
    group, item, tile = at // (raster * len(cost)), at // raster % len(cost), at % raster
    return {"pos1": pos, "crd1": order[item].int(), "crd2": (group * raster + tile).int()}


def share_lists(
    counts: torch.Tensor, cost: torch.Tensor, *, by: int, workers: int, most: int
) -> dict[str, torch.Tensor]:
    """Pairs (panel, share) for each worker: shares of `by` neighbours of the `counts` positions of each panel.

    `cost` is float [by + 1], that of a share with so many positions; the heaviest shares go first to the least loaded
    worker. There are `most` positions, or fewer. Returns `pos1` int32 [workers + 1], `crd1` (panel) and `crd2` (share)
    int32 [as many shares as `most` positions can have], of which the first `pos1[workers]` count.

        >>> lists = share_lists(torch.tensor([3, 0, 2]), torch.tensor([0.0, 1.0, 2.0]), by=2, workers=2, most=5)
        >>> lists["pos1"].tolist(), lists["crd1"].tolist()[:3], lists["crd2"].tolist()[:3]
        ([0, 2, 3], [0, 0, 2], [0, 1, 0])
    """
    panel, share, weight = shares_of(counts, cost, by, most)
    return _handed_out(weight, [panel, share], workers)


def shares_of(counts: torch.Tensor, cost: torch.Tensor, by: int, most: int) -> tuple[torch.Tensor, ...]:
    """What `share_lists` hands out: panel, number and cost of each share, -1 where there is none."""
    panel, share, there = spread((counts + (by - 1)) // by, (most + len(counts) * (by - 1)) // by)
    positions = (torch.sub(counts[panel], share, alpha=by) * there).clamp(max=by)
    cost = cost.to(counts.device, torch.float64, non_blocking=True)
    return panel, share, cost[positions].masked_fill_(~there, -1.0)


def gathered_shares(
    positions: torch.Tensor, columns: torch.Tensor, *, by: int, within: int, workers: int, segment: int, tile: int = 64
) -> dict[str, torch.Tensor]:
    """Triples (panel, first position of the panel, number of positions) for each worker, the longest shares first.

    Panel p has the positions [positions[p], positions[p + 1]), whose coordinates `columns` ascend. A share has up
    to `by` of them, `within` so many columns from a multiple of `tile` on. Shares that do not come out even for all
    workers are cut once more. A share costs as much as `segment` positions more. Returns `pos1` int32 [workers + 1],
    and int32 [len(columns) + 2 * workers] `crd1` (panel), `crd2` (first) and `crd3` (number), of which the first
    `pos1[workers]` count.

        >>> positions, columns = torch.tensor([0, 3]), torch.tensor([0, 16, 96])
        >>> lists = gathered_shares(positions, columns, by=4, within=64, workers=2, segment=8)
        >>> lists["pos1"].tolist(), *(lists[name].tolist()[:2] for name in ("crd1", "crd2", "crd3"))
        ([0, 1, 2], [0, 0], [0, 2], [2, 1])
    """
    shares = longest_shares(positions, columns, by=by, within=within, workers=workers, tile=tile)
    columns = even_shares(shares, by=by, workers=workers)
    return _handed_out(gathered_cost(columns[2], segment), list(columns), workers)


def gathered_cost(count: torch.Tensor, segment: int) -> torch.Tensor:
    """What shares of so many positions cost, in positions; -1 where there are none."""
    return (count.double() + segment).masked_fill_(count <= 0, -1.0)


def longest_shares(positions, columns, *, by: int, within: int, workers: int, tile: int = 64) -> torch.Tensor:
    """Panel, first position and number of positions of each share of `gathered_shares`, uncut, the longest first.

    int64 [3, shares]: they are as many as `columns` and workers; those behind the last share have no positions.
    """
    found = _greedy(positions.long(), columns.long(), by, within, tile)
    shares = torch.nn.functional.pad(torch.stack(found), (0, workers))
    return shares[:, torch.argsort(shares[2], descending=True, stable=True)]


def even_shares(shares: torch.Tensor, *, by: int, workers: int) -> torch.Tensor:
    """The shares of `longest_shares`; those that do not come out even for all workers are cut into shorter ones."""
    panel, first, count = shares
    whole = (count > 0).sum() // workers * workers
    pieces = _cut_again(shares[:, whole + counted(workers, count.device)], by)
    kept = count * (counted(len(count), count.device) < whole)
    return torch.cat([torch.stack([panel, first, kept]), torch.stack(pieces)], 1)


def _greedy(positions: torch.Tensor, columns: torch.Tensor, by: int, within: int, tile: int):
    """For each position the panel, its number there, and how many positions the share has that begins there, 0 if none.

    A share begins where the one before ends, from the first position on: that is looked up for all positions at
    once, and followed from the first in leaps that double.
    """
    n, panels, device = len(columns), len(positions) - 1, columns.device
    at = counted(n, device)
    panel = torch.searchsorted(positions[1:].contiguous(), at, right=True)
    known, above = panel.clamp(max=max(panels - 1, 0)), panel << 32
    stop = torch.searchsorted(above + columns, torch.add(above, columns // tile * tile + within))
    end, there = torch.minimum(stop, at + by), panel < panels
    end = torch.minimum(end, positions[known + 1]) if panels else end
    leap = torch.where(there, end, n)
    leap = torch.cat([leap, counted(n + 2, device)[n:]])
    begins = (counted(n + 2, device) == 0) & (leap >= 0)
    for _ in range(n.bit_length()):
        begins.index_put_((torch.where(begins, leap, leap[n + 1 :]),), on_device((True,), torch.bool, device))
        leap = leap[leap]
    return known, at - positions[known], (end - at) * (begins[:n] & there)


def _cut_again(shares: torch.Tensor, by: int) -> list[torch.Tensor]:
    """Shares of up to `by` positions, as many as there are workers or fewer, in pieces as short as so many can be."""
    count = shares[2]
    length = counted(by + 1, count.device)[1:, None]
    length = 1 + ((count + (length - 1)) // length).sum(1).gt(len(count)).sum()
    parts = (count + (length - 1)) // length
    share, piece, there = spread(parts, len(count))
    panel, first, count, parts = torch.cat([shares, parts[None]])[:, share]
    low, high = count * torch.stack([piece, piece + 1]) // parts.clamp(min=1)
    return [panel, first + low, (high - low) * there]


def sum_of_costs(cost: torch.Tensor) -> torch.Tensor:
    """The sum of float64 costs as whole 2^-20ths: their order does not matter, nor how many lists are made at once.

    >>> sum_of_costs(torch.tensor([0.5, 3.0]).double()).item()
    3.5
    """
    return (cost * 2.0**20).round().long().sum().double() / 2.0**20


def spread(parts: torch.Tensor, size: int):
    """Whose part each of `size` places is, the how manieth, and whether there is one: int64 [..., size].

    `parts` is int64 [..., n]: the places of a row are those of its first, its second, and so on.
    """
    ends = parts.cumsum(-1)
    place = counted(size, parts.device).expand(*parts.shape[:-1], size).contiguous()
    owner = torch.searchsorted(ends, place, right=True).clamp(max=max(parts.shape[-1] - 1, 0))
    return owner, place - (ends - parts).gather(-1, owner), place < ends[..., -1:]


def by_list(number: torch.Tensor, lists: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Which entries each list has, in order, int64 [entries], and where each list begins, int32 [lists + 1].

    `number` is the list of each entry; those of -1 come last.
    """
    number, at = torch.sort(number % (lists + 1), stable=True)  # -1 is the largest
    bounds = counted(lists + 1, number.device).to(number.dtype)
    return at, torch.searchsorted(number, bounds, out_int32=True)


def _handed_out(weight: torch.Tensor, columns: list[torch.Tensor], workers: int) -> dict[str, torch.Tensor]:
    """Lists of what `columns` say, the heaviest first to the least loaded worker; a negative weight is of nothing."""
    order = torch.argsort(weight, descending=True, stable=True)
    worker = hand_out(weight[order], workers=workers).reshape(-1)
    at, pos = by_list(worker, workers)
    return {"pos1": pos} | {f"crd{n + 1}": column[order[at]].int() for n, column in enumerate(columns)}


def group_lists(cost: torch.Tensor, *, workers: int, raster: int, groups: int) -> dict[str, torch.Tensor]:
    """Work lists for any number of tiles: for each group of `raster` tiles, and each number m of tiles that the last
    group may have, those of each worker.

    List `raster * g + m - 1` is that of m tiles in group g, after the whole groups before it; the heaviest panels go
    first to the least loaded worker. Returns `pos2` int32 [groups * raster * workers + 1], `crd2` (panel) and `crd3`
    (tile within the group) int32.

        >>> lists = group_lists(torch.tensor([1.0, 3.0]), workers=2, raster=1, groups=2)
        >>> lists["pos2"].tolist(), lists["crd2"].tolist(), lists["crd3"].tolist()
        ([0, 1, 2, 3, 4], [1, 0, 0, 1], [0, 0, 0, 0])
    """
    number, panel, tile = group_items(cost, workers=workers, raster=raster, groups=groups)
    at, pos = by_list(number, groups * raster * workers)
    at = at[: groups * len(cost) * (raster * (raster + 1) // 2)]
    return {"pos2": pos, "crd2": panel[at].int(), "crd3": tile[at].int()}


def group_items(cost: torch.Tensor, *, workers: int, raster: int, groups: int) -> list[torch.Tensor]:
    """What `group_lists` hands out: of each item its list (-1 of none), panel and tile; int64 [items]."""
    order = torch.argsort(cost, descending=True, stable=True)
    worker = hand_out(cost[order], workers=workers, tiles=range(1, raster + 1), groups=groups)
    unit = counted(groups * raster, cost.device).reshape(groups, raster, 1, 1)
    number = torch.where(worker < 0, worker, torch.add(worker, unit, alpha=workers))
    tile = counted(raster, cost.device)
    return [column.expand_as(worker).reshape(-1) for column in (number, order[:, None], tile)]


def panel_cost(
    arrays: dict[str, torch.Tensor], *, tile_bytes: int, step_bytes: int, cycles: float, cost: Cost
) -> torch.Tensor:
    """Microseconds that a panel of an execution layout takes for one tile of the dense axis, float [panels].

    Every tile costs `cycles` of the tensor cores and `tile_bytes`, every step `step_bytes`; `cost` says what these
    take, and what a panel costs besides, which is twice that at the least, for behind the stores of an empty one
    nothing is hidden. A companion index has one tile in each step.

        >>> arrays = {"pos1": torch.tensor([0, 2]), "pos2": torch.tensor([0, 3, 4])}
        >>> cost = Cost(70_000, 2048, 1500, panel=500, start=0, part=0, move=0, segment=8, kept=16)
        >>> panel_cost(arrays, tile_bytes=0, step_bytes=70_000, cycles=3000.0, cost=cost).tolist()
        [8.5]
    """
    steps = arrays["pos1"].diff().double()
    tiles = arrays["pos2"][arrays["pos1"].long()].diff().double() if "pos2" in arrays else steps
    copies, fixed = (steps * step_bytes + tiles * tile_bytes) / cost.bytes, cost.panel / 1e3
    return (torch.maximum(tiles * cycles / cost.clock, copies) + fixed).clamp(min=2 * fixed)

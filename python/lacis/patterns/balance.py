# SPDX-License-Identifier: Apache-2.0
"""Work lists: which worker computes which tiles of an output."""

from __future__ import annotations

import bisect
import heapq
import itertools

import torch


def work_lists(cost: torch.Tensor, tiles: int, *, workers: int, raster: int = 8) -> dict[str, torch.Tensor]:
    """Pairs (panel, tile) for each worker, the heaviest panels first to the least loaded worker.

    `cost` is float [panels], the same for each of the `tiles` of the dense axis; `raster` tiles of it are worked on
    together. Returns `pos1` int32 [workers + 1], `crd1` (panel) and `crd2` (tile) int32 [panels * tiles].

        >>> lists = work_lists(torch.tensor([1.0, 3.0]), 2, workers=2)
        >>> lists["pos1"].tolist(), lists["crd1"].tolist(), lists["crd2"].tolist()
        ([0, 2, 4], [1, 0, 1, 0], [0, 0, 1, 1])
    """
    costs = cost.tolist()
    order = sorted(range(len(costs)), key=lambda panel: -costs[panel])
    load = [(0.0, worker) for worker in range(workers)]
    lists: list[list[tuple[int, int]]] = [[] for _ in range(workers)]
    for begin in range(0, tiles, raster):
        for panel in order:
            for tile in range(begin, min(tiles, begin + raster)):
                busy, worker = heapq.heappop(load)
                lists[worker].append((panel, tile))
                heapq.heappush(load, (busy + costs[panel], worker))
    return _arrays(lists, 2, cost.device)


def share_lists(counts: torch.Tensor, cost: torch.Tensor, *, by: int, workers: int) -> dict[str, torch.Tensor]:
    """Pairs (panel, share) for each worker: shares of `by` neighbours of the `counts` positions of each panel.

    `cost` is float [by + 1], that of a share with so many positions; the heaviest shares go first to the least loaded
    worker. Returns `pos1` int32 [workers + 1], `crd1` (panel) and `crd2` (share) int32 [shares].

        >>> lists = share_lists(torch.tensor([3, 0, 2]), torch.tensor([0.0, 1.0, 2.0]), by=2, workers=2)
        >>> lists["pos1"].tolist(), lists["crd1"].tolist(), lists["crd2"].tolist()
        ([0, 2, 3], [0, 0, 2], [0, 1, 0])
    """
    costs = cost.tolist()
    shares = [
        (costs[min(by, n - first)], (p, first // by))
        for p, n in enumerate(counts.tolist())
        for first in range(0, n, by)
    ]
    return _arrays(_handed_out(shares, workers), 2, counts.device)


def gathered_shares(
    positions: torch.Tensor, columns: torch.Tensor, *, by: int, within: int, workers: int, tile: int = 64
) -> dict[str, torch.Tensor]:
    """Triples (panel, first position of the panel, number of positions) for each worker, the longest shares first.

    Panel p has the positions [positions[p], positions[p + 1]), whose coordinates `columns` ascend. A share has up
    to `by` of them, `within` so many columns from a multiple of `tile` on. Shares that do not come out even for all
    workers are cut once more. Returns `pos1` int32 [workers + 1], `crd1` (panel), `crd2` (first) and `crd3` (number)
    int32 [shares].

        >>> lists = gathered_shares(torch.tensor([0, 3]), torch.tensor([0, 16, 96]), by=4, within=64, workers=2)
        >>> lists["pos1"].tolist(), lists["crd1"].tolist(), lists["crd2"].tolist(), lists["crd3"].tolist()
        ([0, 1, 2], [0, 0], [0, 2], [2, 1])
    """
    bounds, column, shares = positions.tolist(), columns.tolist(), []
    for panel, (begin, end) in enumerate(itertools.pairwise(bounds)):
        first = begin
        while first < end:
            stop = column[first] // tile * tile + within
            last = bisect.bisect_left(column, stop, first, min(first + by, end))
            shares.append((panel, first - begin, last - first))
            first = last
    shares.sort(key=lambda share: -share[2])
    whole = len(shares) // workers * workers
    shares[whole:] = _cut_again(shares[whole:], workers)
    return _arrays(_handed_out([(share[2] + tile / 8, share) for share in shares], workers), 3, positions.device)


def _cut_again(shares: list[tuple[int, int, int]], most: int) -> list[tuple[int, int, int]]:
    """The shares, of which there are fewer than `most`, in pieces as short as `most` pieces can be."""
    lengths = range(1, max((share[2] for share in shares), default=1) + 1)
    length = next(n for n in lengths if sum(-(-share[2] // n) for share in shares) <= most)
    pieces = []
    for panel, first, count in shares:
        parts = -(-count // length)
        cuts = [count * n // parts for n in range(parts + 1)]
        pieces += [(panel, first + low, high - low) for low, high in itertools.pairwise(cuts)]
    return pieces


def _handed_out(shares, workers: int) -> list[list[tuple[int, ...]]]:
    """Pairs (weight, share) by worker, the heaviest first to the least loaded."""
    load = [(0.0, worker) for worker in range(workers)]
    lists: list[list[tuple[int, ...]]] = [[] for _ in range(workers)]
    for weight, share in sorted(shares, key=lambda entry: -entry[0]):
        busy, worker = heapq.heappop(load)
        lists[worker].append(share)
        heapq.heappush(load, (busy + weight, worker))
    return lists


def _arrays(lists: list[list[tuple[int, ...]]], width: int, device) -> dict[str, torch.Tensor]:
    lengths = torch.tensor([0, *map(len, lists)])
    entries = torch.tensor([entry for items in lists for entry in items], dtype=torch.int32).reshape(-1, width)
    arrays = {"pos1": lengths.cumsum(0).int()} | {f"crd{n + 1}": entries[:, n] for n in range(width)}
    return {name: array.contiguous().to(device, non_blocking=True) for name, array in arrays.items()}


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
    costs = cost.tolist()
    order = sorted(range(len(costs)), key=lambda panel: -costs[panel])
    load = [(0.0, worker) for worker in range(workers)]
    positions, panels, tiles = [0], [], []
    for _ in range(groups):
        for count in range(1, raster + 1):
            busy = list(load)
            heapq.heapify(busy)
            lists: list[list[tuple[int, int]]] = [[] for _ in range(workers)]
            for panel in order:
                for tile in range(count):
                    time, worker = busy[0]
                    lists[worker].append((panel, tile))
                    heapq.heapreplace(busy, (time + costs[panel], worker))
            for items in lists:
                positions.append(positions[-1] + len(items))
                panels += [panel for panel, _ in items]
                tiles += [tile for _, tile in items]
        load = busy
    arrays = {"pos2": positions, "crd2": panels, "crd3": tiles}
    made = {name: torch.tensor(array, dtype=torch.int32) for name, array in arrays.items()}
    return {name: array.to(cost.device, non_blocking=True) for name, array in made.items()}


def panel_cost(
    arrays: dict[str, torch.Tensor], *, tile_bytes: int, step_bytes: int, cycles: float, fixed: float
) -> torch.Tensor:
    """Microseconds that a panel of an execution layout takes for one tile of the dense axis, float [panels].

    Every tile costs `cycles` of the tensor cores (at 1.5 GHz) and `tile_bytes`, every step `step_bytes`; a panel
    costs `fixed` besides. Bytes arrive at 70 KB a microsecond. A companion index has one tile in each step.

        >>> arrays = {"pos1": torch.tensor([0, 2]), "pos2": torch.tensor([0, 3, 4])}
        >>> panel_cost(arrays, tile_bytes=0, step_bytes=70_000, cycles=3000.0, fixed=0.5).tolist()
        [8.5]
    """
    steps = arrays["pos1"].diff().double()
    tiles = arrays["pos2"][arrays["pos1"].long()].diff().double() if "pos2" in arrays else steps
    copies = (steps * step_bytes + tiles * tile_bytes) / 70e3
    return torch.maximum(tiles * cycles / 1.5e3, copies) + fixed

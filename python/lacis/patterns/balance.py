# SPDX-License-Identifier: Apache-2.0
"""Work lists: which worker computes which tiles of an output."""

from __future__ import annotations

import heapq

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
    lengths = torch.tensor([0, *map(len, lists)])
    pairs = torch.tensor([pair for items in lists for pair in items], dtype=torch.int32).reshape(-1, 2)
    arrays = {"pos1": lengths.cumsum(0).int(), "crd1": pairs[:, 0], "crd2": pairs[:, 1]}
    return {name: array.contiguous().to(cost.device) for name, array in arrays.items()}


def panel_cost(
    arrays: dict[str, torch.Tensor], *, tile_bytes: int, step_bytes: int, cycles: float, fixed: float
) -> torch.Tensor:
    """Microseconds that a panel of an execution layout takes for one tile of the dense axis, float [panels].

    Every tile costs `cycles` of the tensor cores (at 1.5 GHz) and `tile_bytes`, every step `step_bytes`; a panel
    costs `fixed` besides. Bytes arrive at 70 KB a microsecond.

        >>> arrays = {"pos1": torch.tensor([0, 2]), "pos2": torch.tensor([0, 3, 4])}
        >>> panel_cost(arrays, tile_bytes=0, step_bytes=70_000, cycles=3000.0, fixed=0.5).tolist()
        [8.5]
    """
    steps = arrays["pos1"].diff().double()
    tiles = arrays["pos2"][arrays["pos1"].long()].diff().double()
    copies = (steps * step_bytes + tiles * tile_bytes) / 70e3
    return torch.maximum(tiles * cycles / 1.5e3, copies) + fixed

# SPDX-License-Identifier: Apache-2.0
"""Items handed out to workers: each to the least loaded one."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import torch

# How it is done on a GPU without the host; the runtime, which compiles kernels, puts it here.
on_device: Callable[[torch.Tensor, int, int, int], torch.Tensor] | None = None
_DEVICE = "cuda"


def hand_out(cost: torch.Tensor, *, workers: int, raster: int = 1, groups: int = 1) -> torch.Tensor:
    """The worker of each tile of each item, int32 [groups, raster, n, raster].

    `cost` is float [n], in the order in which items are handed out; negative where there is none. In `[g, m]` each
    item has m + 1 tiles, of which each costs as much, after `g` groups in which it had `raster`; each tile goes to the
    worker with the least cost so far, the first of equals. -1 stands where there is no tile. For one group `cost` may
    be float [raster, n]: `cost[m]` is of `[0, m]`.

        >>> hand_out(torch.tensor([3.0, 2.0, 2.0, -1.0]).double(), workers=2).flatten().tolist()
        [0, 1, 1, -1]
    """
    cost = cost.double().expand(raster, -1).contiguous()
    if cost.device.type == _DEVICE and on_device is not None:
        return on_device(cost, workers, raster, groups)
    costs, load = cost.tolist(), [(0.0, worker) for worker in range(workers)]
    lists, busy = [], load
    for _ in range(groups):
        for tiles in range(1, raster + 1):
            busy = list(load)
            for each in costs[tiles - 1]:
                given = tiles if each >= 0 else 0
                lists += [_give(busy, each) for _ in range(given)] + [-1] * (raster - given)
        load = busy
    found = torch.tensor(lists, dtype=torch.int32).reshape(groups, raster, cost.shape[1], raster)
    return found.to(cost.device, non_blocking=True)


def _give(load: list[tuple[float, int]], cost: float) -> int:
    """The least loaded worker of a heap, which gets busier."""
    time, worker = load[0]
    heapq.heapreplace(load, (time + cost, worker))
    return worker

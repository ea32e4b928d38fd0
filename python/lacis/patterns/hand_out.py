# SPDX-License-Identifier: Apache-2.0
"""Items handed out to workers: each to the least loaded one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import torch

# How it is done on a GPU without the host; the runtime, which compiles kernels, puts it here.
on_device: Callable[[torch.Tensor, int, Sequence[int], int], torch.Tensor] | None = None
_DEVICE = "cuda"


def hand_out(cost: torch.Tensor, *, workers: int, tiles: Sequence[int] = (1,), groups: int = 1) -> torch.Tensor:
    """The worker of each tile of each item, int32 [groups, rows, n, most tiles].

    `cost` is float [rows, n], in the order in which items are handed out; last come negative ones, of none. In `[g, r]`
    each item has `tiles[r]` tiles, of which each costs `cost[r]`, after `g` groups in which it had the most tiles; each
    goes to the worker with the least cost so far, the first of equals. -1 stands where there is no tile. A `cost` of
    float [n] is that of all rows, as it must be for more than one group.

        >>> hand_out(torch.tensor([3.0, 2.0, 2.0, -1.0]).double(), workers=2).flatten().tolist()
        [0, 1, 1, -1]
    """
    most, cost = max(tiles), cost.double().expand(len(tiles), -1).contiguous()
    if cost.device.type == _DEVICE and on_device is not None:
        return on_device(cost, workers, tiles, groups)
    lists, load = [], [(0.0, worker) for worker in range(workers)]
    whole = load
    for _ in range(groups):
        for costs, count in zip(cost.tolist(), tiles):
            busy = list(load)
            for each in costs:
                given = count if each >= 0 else 0
                lists += [_give(busy, each) for _ in range(given)] + [-1] * (most - given)
            whole = busy if count == most else whole
        load = whole
    found = torch.tensor(lists, dtype=torch.int32).reshape(groups, *cost.shape, most)
    return found.to(cost.device, non_blocking=True)


def _give(load: list[tuple[float, int]], cost: float) -> int:
    """The least loaded worker of a heap, which gets busier."""
    time, worker = load[0]
    heapq.heapreplace(load, (time + cost, worker))
    return worker

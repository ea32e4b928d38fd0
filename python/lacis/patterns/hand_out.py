# SPDX-License-Identifier: Apache-2.0
"""Items handed out to workers: each to the least loaded one."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence

import torch

from .transforms import one_or_several

# How it is done on a GPU without the host; the runtime, which compiles kernels, puts it here.
on_device: Callable[[torch.Tensor, int, Sequence[int], int], torch.Tensor] | None = None
_DEVICE = "cuda"


def hand_out(cost: torch.Tensor, *, workers: int, tiles: Sequence[int] = (1,), groups: int = 1) -> torch.Tensor:
    """The worker of each tile of each item, int32 [groups, rows, n, most tiles].

    `cost` is float [rows, n], in the order in which items are handed out; last come negative ones, of none. In `[g, r]`
    each item has `tiles[r]` tiles, of which each costs `cost[r]`, after `g` groups in which it had the most tiles; each
    goes to the worker with the least cost so far, the first of equals. -1 stands where there is no tile. A `cost` of
    float [n] is that of all rows.

        >>> hand_out(torch.tensor([3.0, 2.0, 2.0, -1.0]).double(), workers=2).flatten().tolist()
        [0, 1, 1, -1]
    """
    cost = cost.double().expand(len(tiles), -1)
    one = lambda cost: _hand_out(cost, workers, tiles, groups)
    return one_or_several(cost, one, lambda costs: _of_several(costs, workers, tiles, groups))


def _of_several(costs: torch.Tensor, workers: int, tiles: Sequence[int], groups: int) -> torch.Tensor:
    """[several, groups, rows, n, most tiles], for `costs` [several, rows, n]: they are rows of one list."""
    found = _hand_out(costs.flatten(0, 1), workers, tiles, groups)
    return found.unflatten(1, costs.shape[:2]).movedim(1, 0)


def _hand_out(cost: torch.Tensor, workers: int, tiles: Sequence[int], groups: int) -> torch.Tensor:
    """`hand_out` of costs whose rows take turns at `tiles`."""
    if cost.device.type == _DEVICE and on_device is not None:
        return on_device(cost.contiguous(), workers, tiles, groups)
    most, rows = max(tiles), []
    for costs, count in zip(cost.tolist(), itertools.cycle(tiles)):
        load, lists = [(0.0, worker) for worker in range(workers)], []
        for _ in range(groups):
            busy = list(load)
            lists.append([_give_all(busy, each, count) + [-1] * (most - count) for each in costs])
            load = busy if count == most else load
            if count < most:
                for each in costs:
                    _give_all(load, each, most)
        rows.append(lists)
    found = torch.tensor(rows, dtype=torch.int32).reshape(len(rows), groups, cost.shape[1], most).movedim(1, 0)
    return found.to(cost.device, non_blocking=True)


def _give_all(load: list[tuple[float, int]], cost: float, tiles: int) -> list[int]:
    """Who gets so many tiles: each the least loaded worker of a heap, which gets busier; -1 where a cost says none."""
    given = []
    for _ in range(tiles):
        time, worker = load[0]
        if cost >= 0:
            heapq.heapreplace(load, (time + cost, worker))
        given.append(worker if cost >= 0 else -1)
    return given

# SPDX-License-Identifier: Apache-2.0
"""What patterns leave to kernels: items handed out, rows brought together, values copied to where tiles want them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from ..emit.group_rows import group_rows as group_rows_text
from ..emit.hand_out import hand_out as hand_out_text
from ..emit.scatter_units import scatter_units
from ..patterns import copies
from ..patterns import group_rows as grouping
from ..patterns import hand_out as handing
from ..patterns.constants import on_device
from . import library
from .bound import BoundFill
from .kernels import compile_on


_kernel = functools.cache(compile_on)


def _run(text: str, operands: list[torch.Tensor], shape: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        return library.einsum(operands, [], shape, _kernel(text, operands[0].device).key)


def hand_out(cost: torch.Tensor, workers: int, tiles: Sequence[int], groups: int) -> torch.Tensor:
    """As `lacis.patterns.hand_out.hand_out`, on the device of `cost`, whose rows take turns at `tiles`."""
    start = torch.zeros(workers, dtype=torch.float64, device=cost.device)
    counts = on_device(tuple(tiles), torch.int32, cost.device)
    return _run(hand_out_text(cost.is_cuda), [cost, start, counts], (groups, *cost.shape, max(tiles)))


def group_rows(words: torch.Tensor, begins: torch.Tensor) -> torch.Tensor:
    """Orders as `lacis.patterns.group_rows.group_rows`, of int32 [several, rows, words] and int32 [rows]: 1 where a
    panel begins."""
    return _run(group_rows_text(words.is_cuda), [words.contiguous(), begins], tuple(words.shape[:2]))


def scatter(units: torch.Tensor, places: torch.Tensor, room: torch.Tensor) -> BoundFill:
    """What copies `units` [units, words] to the rows `places` of `room`; those of places beyond the room go nowhere."""
    kernel = _kernel(scatter_units(8 * units.element_size(), units.shape[1]), units.device)
    return BoundFill([units, places], kernel.key, room)


def register() -> None:
    """Patterns on a GPU leave it to the kernels from now on."""
    handing.on_device, grouping.on_device, copies.scatter = hand_out, group_rows, scatter

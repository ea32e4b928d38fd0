# SPDX-License-Identifier: Apache-2.0
"""Variable extent: positions [pos[parent], pos[parent + 1]) under each parent."""

import dataclasses
import functools

import torch

from ..level import Extent, Placed, Positions, register


@register
@dataclasses.dataclass(frozen=True)
class Var(Extent):
    """`var`; with a stored coordinate it is `compressed`, with an implicit one `ragged`."""

    pos: str = "i32"

    name = "var"
    has_code = True
    counts = True

    def buffers(self):
        return ("pos",)

    def place(self, fibre):
        starts, position = segments(fibre)
        known = not fibre.level.coordinate.implicit and fibre.extra is None
        # Without a wait where a GPU need not be asked.
        slots = int(starts[-1]) if not known else fibre.crd.numel() if fibre.is_each else fibre.first.numel()
        return Placed(position, slots, (slots,), {"pos": starts})

    def read(self, buffers, parents, size, device):
        pos = buffers["pos"]
        slots = int(pos[-1]) if buffers.positions is None else buffers.positions.numel()
        numbers = functools.cache(lambda: torch.arange(slots, device=device))  # the first level may need none
        is_full = buffers.positions is None or buffers.exact
        valid = None if is_full else numbers() < pos[-1]  # the rest is room
        parent = lambda: parents_of(pos[1:].long(), numbers())
        within = lambda: parent() if is_full else parent().clamp_(max=max(parents - 1, 0))
        offset = lambda own: numbers() - pos.long().index_select(0, own.parent) if slots else numbers()
        return Positions(within, offset, slots, valid)

    def check(self, check, buffers, parents, size):
        pos = buffers["pos"]
        if tuple(pos.shape) != (parents + 1,):
            check.fail("pos", f"must have shape [{parents + 1}], not {list(pos.shape)}")
        check.none("pos", pos[:1] != 0, "the first position must be 0, not {value}", pos[:1])
        check.none(
            "pos",
            pos[1:] < pos[:-1],
            "positions must not decrease, but the next is less than {value}",
            pos[:-1],
        )
        slots, own = int(pos[-1]), buffers.positions
        if own is None:
            check.none("pos", pos.diff() > size, f"more than the {size} coordinates of the level follow {{value}}", pos)
            return slots
        name, room = buffers.per_position, own[slots:]
        if own.ndim != 1 or own.numel() < slots or (own.numel() > slots and not (check.room and parents)):
            check.fail(name, f"must have shape [{slots}], the last of '{check.name('pos')}', not {list(own.shape)}")
        is_filled = torch.cat([torch.zeros_like(own[:slots], dtype=torch.bool), room != -1])
        check.none(name, is_filled, f"behind the last of '{check.name('pos')}' it must be -1, not {{value}}", own)
        return own.numel()


def parents_of(ends: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    """How many segments end at or before each position of 0, 1, ..., where `ends` ascend.

    A CPU adds them up, in a fifth of the time of a search for each; a GPU searches, for its sums would be atomic.

    >>> parents_of(torch.tensor([2, 2, 3]), torch.arange(4)).tolist()
    [0, 0, 2, 3]
    """
    if position.device.type != "cpu":
        return torch.searchsorted(ends.contiguous(), position, right=True)
    ended = torch.zeros(len(position) + 1, dtype=torch.int32)
    ended = ended.scatter_add(0, ends.clamp(0, len(position)), torch.ones(len(ends), dtype=torch.int32))
    return ended[:-1].cumsum(0)


def segments(fibre) -> tuple[torch.Tensor, torch.Tensor]:
    """Where the segment of each parent begins, int64 [parents + 1], and the position of each entry, int64 [n].

    A segment has the positions that its entries take; without coordinates all up to its last one.
    """
    if not fibre.level.coordinate.implicit:
        return fibre.starts(), fibre.position
    length = torch.zeros(fibre.parents, dtype=torch.int64, device=fibre.crd.device)
    length = length.scatter_reduce(0, fibre.parent, fibre.crd + 1, "amax")
    starts = torch.cat([length.new_zeros(1), torch.cumsum(length, 0)])
    return starts, starts[fibre.parent] + fibre.crd

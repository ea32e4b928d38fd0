# SPDX-License-Identifier: Apache-2.0
"""Variable extent with both ends stored: room between the segments."""

import dataclasses

import torch

from ..level import Extent, Placed, Positions, register
from .var import segments


@register
@dataclasses.dataclass(frozen=True)
class Var2(Extent):
    """`var2`: positions [lo[parent], hi[parent]) under each parent, which lie anywhere in the room of the coordinates.

    Positions between the segments hold nothing: entries come and go without a change of any size.
    """

    pos: str = "i32"

    name = "var2"
    has_code = True
    gaps = True

    def buffers(self):
        return ("lo", "hi")

    def width_of(self, buffer):
        return super().width_of("pos") if buffer in self.buffers() else None

    def with_width(self, buffer, width):
        return Var2(width or "i32") if buffer in self.buffers() else self

    def refuses(self, coordinate):
        if coordinate.per_position is not None:
            return None
        return f"'var2' needs an array with an element for each position, '{coordinate.name}' has none: use 'var2*crd'"

    def place(self, fibre):
        starts, position = segments(fibre)
        slots = int(starts[-1])
        return Placed(position, slots, (slots,), {"lo": starts[:-1], "hi": starts[1:]})

    def read(self, buffers, parents, size, device):
        slots = buffers.positions.numel()
        position = torch.arange(slots, device=device)
        lo, hi, used = self._in_order(buffers)
        if not used.numel():
            return Positions(torch.zeros_like(position), torch.zeros_like(position), slots, position < 0)
        at = torch.searchsorted(lo, position, right=True) - 1
        valid = (at >= 0) & (position < hi[at])
        parent = torch.where(valid, used[at], 0)
        return Positions(parent, torch.where(valid, position - lo[at], 0), slots, valid)

    @staticmethod
    def _in_order(buffers):
        """The ends of the segments that are not empty, ascending, and the parent of each."""
        lo, hi = buffers["lo"].long(), buffers["hi"].long()
        used = (hi > lo).nonzero().reshape(-1)
        used = used[torch.argsort(lo[used], stable=True)]
        return lo[used], hi[used], used

    def check(self, check, buffers, parents, size):
        lo, hi, slots = buffers["lo"], buffers["hi"], buffers.positions.numel()
        for name, ends in (("lo", lo), ("hi", hi)):
            if tuple(ends.shape) != (parents,):
                check.fail(name, f"must have shape [{parents}], one under each parent, not {list(ends.shape)}")
            outside = (ends < 0) | (ends > slots)
            check.none(name, outside, f"position {{value}} is outside of the {slots} that have room", ends)
        if buffers.positions.ndim != 1:
            check.fail(buffers.per_position, f"must have one axis, not {buffers.positions.ndim}")
        check.none("hi", hi < lo, "position {value} lies before that where the segment begins", hi)
        begin, end, used = self._in_order(buffers)
        meets = torch.zeros(parents, dtype=torch.bool, device=lo.device)
        meets[used[1:][begin[1:] < end[:-1]]] = True
        check.none("lo", meets, "position {value} belongs to the segment of another parent, too", lo)
        return slots

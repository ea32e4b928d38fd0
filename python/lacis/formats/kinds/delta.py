# SPDX-License-Identifier: Apache-2.0
"""Delta coordinate: the distance to the coordinate before, in a few bits."""

import dataclasses

import torch

from ..level import Coordinate, register


@register
@dataclasses.dataclass(frozen=True)
class Delta(Coordinate):
    """`delta<bits>`, 8 or 16: an entry lies 1 + delta behind the one before it, the first 1 + delta behind -1.

    All bits set: no entry is here, and what follows lies as many coordinates further on.
    """

    bits: int = 8

    name = "delta"
    has_code = True
    positional = "bits"
    per_position = "delta"
    skips = True

    @property
    def most(self) -> int:
        """All bits set."""
        return (1 << self.bits) - 1

    def buffers(self):
        return ("delta",)

    def width_of(self, buffer):
        return f"i{self.bits}" if buffer == "delta" else None

    def refuses_under(self, extent, digits):
        if self.bits not in (8, 16):
            return f"a delta has 8 or 16 bits, not {self.bits}"
        if extent.covers:
            return f"'{extent.name}' has every coordinate, there is nothing to store: use 'dense', or 'var*delta'"
        return None

    def extra(self, fibre):
        return self._gap(fibre) // self.most

    @staticmethod
    def _gap(fibre):
        """int64 [n]: how many coordinates lie between each entry and the one before it."""
        before = torch.full_like(fibre.crd, -1)
        before[1:] = torch.where(fibre.parent[1:] == fibre.parent[:-1], fibre.crd[:-1], -1)
        return (fibre.crd - before - 1).clamp(min=0)  # of several entries at one place the first counts

    def place(self, fibre, placed):
        delta = torch.full((placed.slots,), -1, dtype=torch.int64, device=fibre.crd.device)
        rest = (self._gap(fibre) % self.most)[fibre.first]
        delta[placed.pos[fibre.first]] = torch.where(rest > self.most // 2, rest - self.most - 1, rest)  # signed
        return {"delta": delta.reshape(placed.shape)}

    def read(self, buffers, positions, size):
        delta = buffers["delta"].reshape(-1).long() & self.most
        valid = delta != self.most
        steps = torch.where(valid, delta + 1, self.most)
        reached = torch.cumsum(steps, 0)
        begin = torch.arange(positions.slots, device=delta.device) - positions.offset
        crd = reached - (reached - steps)[begin] - 1
        valid = valid if positions.valid is None else valid & positions.valid
        return torch.where(valid, crd, 0), valid

    def check(self, check, buffers, level, positions, size):
        crd, valid = self.read(buffers, positions, size)
        delta = buffers["delta"]
        message = f"the entry lies behind the last of the {size} coordinates of the level"
        check.none("delta", (valid & (crd >= size)).reshape(delta.shape), message)

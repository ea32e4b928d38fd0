# SPDX-License-Identifier: Apache-2.0
"""Stored coordinate: one element of `crd` per position, -1 where a padded level has no entry."""

import dataclasses

import torch

from ..level import Coordinate, register


@register
@dataclasses.dataclass(frozen=True)
class Stored(Coordinate):
    """`crd`; `unique=False` lets a coordinate repeat as the level below demands.

    `crd` is None where the format says no integer type.
    """

    unique: bool = True
    ordered: bool = True
    pad: bool | None = None
    crd: str | None = None

    name = "crd"
    has_code = True
    stored = True
    per_position = "crd"

    def buffers(self):
        return ("crd",)

    def place(self, fibre, placed):
        values = fibre.crd if fibre.is_each else fibre.crd.index_select(0, fibre.first)
        if not fibre.level.padded:
            return {"crd": values}
        at = placed.pos if fibre.is_each else placed.pos.index_select(0, fibre.first)
        crd = torch.full((placed.slots,), -1, dtype=torch.int64, device=values.device)
        crd[at] = values
        return {"crd": crd.reshape(placed.shape)}

    def read(self, buffers, positions, size):
        crd = buffers["crd"].reshape(-1)
        if buffers.exact:  # the padding of a level above holds no entry
            return crd.to(torch.int64, copy=True), positions.valid  # another pattern may keep them
        valid = crd >= 0 if positions.valid is None else (crd >= 0) & positions.valid
        return crd.clamp(min=0).long(), valid

    def check(self, check, buffers, level, positions, size):
        crd = buffers["crd"]
        if positions.valid is not None:  # what lies under no parent is not looked at
            crd = torch.where(positions.valid, crd, -1 if level.padded else 0)
        lowest = -1 if level.padded else 0
        check.none("crd", crd < lowest, "coordinate {value} is negative", crd)
        check.none("crd", crd >= size, f"coordinate {{value}} is out of range, the level has {size}", crd)
        flat = crd.reshape(-1)
        if level.extent.follows or flat.numel() < 2:
            return
        same = positions.parent[1:] == positions.parent[:-1]
        if positions.valid is not None:
            same &= positions.valid[1:] & positions.valid[:-1]
        before, after = flat[:-1], flat[1:]
        hole = same & (before < 0) & (after >= 0)
        self._fail(check, crd, hole, "a coordinate follows the padding; padding belongs at the end")
        pairs = same & (after >= 0)
        if self.ordered:
            self._fail(
                check,
                crd,
                pairs & (after < before),
                "coordinates must ascend, but {value} follows a larger one",
            )
        if self.unique:
            self._fail(check, crd, pairs & (after == before), "coordinate {value} is there twice under one parent")

    @staticmethod
    def _fail(check, crd, bad, message):
        first = torch.zeros(1, dtype=torch.bool, device=bad.device)
        check.none("crd", torch.cat([first, bad]).reshape(crd.shape), message, crd)

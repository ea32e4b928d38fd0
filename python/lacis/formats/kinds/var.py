# SPDX-License-Identifier: Apache-2.0
"""Variable extent: positions [pos[parent], pos[parent + 1]) under each parent."""

import dataclasses

import torch

from ..level import Extent, Placed, Positions, register


@register
@dataclasses.dataclass(frozen=True)
class Var(Extent):
    """`var`; with a stored coordinate it is `compressed`, with an implicit one `ragged`."""

    pos: str = "i32"

    name = "var"
    has_code = True

    def refuses(self, coordinate):
        if coordinate.name == "code":
            return "'code' needs a fixed number of entries: use 'structured<n>'"
        return None

    def buffers(self):
        return ("pos",)

    def place(self, fibre):
        position = torch.cumsum(fibre.begins, 0) - 1
        starts = fibre.starts()
        slots = int(position[-1]) + 1 if position.numel() else 0
        return Placed(position, slots, (slots,), {"pos": starts})

    def read(self, buffers, parents, size, device):
        pos = buffers["pos"].long()
        slots = buffers["crd"].numel() if "crd" in buffers else int(pos[-1])
        position = torch.arange(slots, device=device)
        parent = torch.searchsorted(pos[1:].contiguous(), position, right=True)
        return Positions(parent, position - pos[parent] if slots else position, slots)

    def repeated(self, buffers, times):
        pos = buffers["pos"]
        first = torch.arange(times, device=pos.device, dtype=pos.dtype)[:, None] * pos[-1]
        return {"pos": torch.cat([(pos[:-1] + first).reshape(-1), times * pos[-1:]])}

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
        slots = int(pos[-1])
        if "crd" in buffers and tuple(buffers["crd"].shape) != (slots,):
            check.fail(
                "crd",
                f"must have shape [{slots}], the last of '{check.name('pos')}', not {list(buffers['crd'].shape)}",
            )
        return slots

# SPDX-License-Identifier: Apache-2.0
"""Full extent: a position for every coordinate, `parent * size + crd`; nothing is stored."""

import dataclasses

import torch

from ..level import Extent, Placed, Positions, register


@register
@dataclasses.dataclass(frozen=True)
class Full(Extent):
    """`full`; with an implicit coordinate it is `dense`."""

    name = "full"
    has_code = True
    covers = True
    pads = True

    def refuses(self, coordinate):
        if coordinate.stored:
            return (
                "'full' has every coordinate, there is nothing to store: use 'dense', or 'compressed' to leave some out"
            )
        return None

    def place(self, fibre):
        slots = fibre.parents * fibre.size
        return Placed(fibre.crd if fibre.parents == 1 else fibre.parent * fibre.size + fibre.crd, slots, (slots,))

    def read(self, buffers, parents, size, device):
        slots = parents * size
        position = torch.arange(slots, device=device)
        offset = position if parents == 1 else lambda _: position % max(size, 1)
        return Positions(lambda: position // max(size, 1), offset, slots, covers=True)

    def check(self, check, buffers, parents, size):
        return parents * size

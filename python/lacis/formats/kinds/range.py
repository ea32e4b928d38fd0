# SPDX-License-Identifier: Apache-2.0
"""Range extent: the coordinates that a binding leaves inside the axes (the rows of a diagonal)."""

import dataclasses

import torch

from ..level import Extent, Placed, Positions, register


@register
@dataclasses.dataclass(frozen=True)
class Range(Extent):
    """`range`: a position for every coordinate, as in `dense`; those that lead outside of an axis are padding.

    Where the other axis follows from a binding, kernels locate a coordinate, and test what follows from it.
    """

    name = "range"
    has_code = True
    covers = True
    pads = True

    def refuses(self, coordinate):
        return None if coordinate.implicit else f"'range' knows its coordinates, leave '{coordinate.name}' out"

    def place(self, fibre):
        slots = fibre.parents * fibre.size
        return Placed(fibre.parent * fibre.size + fibre.crd, slots, (slots,))

    def read(self, buffers, parents, size, device):
        position = torch.arange(parents * size, device=device)
        width = max(size, 1)
        return Positions(position // width, position % width, parents * size, covers=True)

    def check(self, check, buffers, parents, size):
        return parents * size

# SPDX-License-Identifier: Apache-2.0
"""Batch extent: values only, for heads that share one pattern."""

import dataclasses

import torch

from ..level import Extent, Placed, Positions, register


@register
@dataclasses.dataclass(frozen=True)
class Batch(Extent):
    """`batch`: `values` has an axis for it before the slots, and the levels below are one pattern for all of it.

    To positions it is a level with one coordinate, whose position is that of the parent.
    """

    name = "batch"
    has_code = True
    covers = True
    shares = True

    def refuses(self, coordinate):
        return None if coordinate.implicit else f"'batch' stores values only, leave '{coordinate.name}' out"

    def place(self, fibre):
        return Placed(fibre.parent, fibre.parents, (fibre.parents,))

    def read(self, buffers, parents, size, device):
        position = torch.arange(parents, device=device)
        return Positions(position, torch.zeros_like(position), parents, covers=True)

    def check(self, check, buffers, parents, size):
        return parents

# SPDX-License-Identifier: Apache-2.0
"""Link: one position under each parent, which names a slot of another pattern's values."""

import dataclasses

from ..level import Coordinate, Extent, Placed, register


@register
@dataclasses.dataclass(frozen=True)
class Link(Extent, Coordinate):
    """`link`: no digits; `link[p]` is the slot whose value belongs to position `p` (see `companion`)."""

    pos: str = "i32"

    name = "link"
    has_code = True
    follows = True
    stands_alone = True
    implicit = True

    def buffers(self):
        return ("link",)

    def place(self, fibre, placed=None):
        if placed is None:
            return Placed(fibre.parent, fibre.parents, (fibre.parents,))
        return {"link": fibre.crd[fibre.first]}

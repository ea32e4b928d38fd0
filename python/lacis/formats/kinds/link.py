# SPDX-License-Identifier: Apache-2.0
"""Link: one position under each parent, which names a slot of another pattern's values."""

import dataclasses

from ..level import Coordinate, Extent, Placed, register


@register
@dataclasses.dataclass(frozen=True)
class Link(Extent, Coordinate):
    """`link`: no digits; `link[p]` is the slot whose value belongs to position `p` (see `companion`).

    In 8 or 16 bits it is the slot's place in its row: that less the first of the row, in a format of entries in order
    under dense rows.
    """

    pos: str = "i32"

    name = "link"
    has_code = True
    follows = True
    stands_alone = True
    implicit = True

    @property
    def is_place(self) -> bool:
        return self.pos in ("i8", "i16")

    def buffers(self):
        return ("link",)

    def width_of(self, buffer):
        return super().width_of("pos") if buffer in self.buffers() else None

    def place(self, fibre, placed=None):
        if placed is None:
            return Placed(fibre.parent, fibre.parents, (fibre.parents,))
        return {"link": fibre.crd[fibre.first]}

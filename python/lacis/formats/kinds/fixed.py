# SPDX-License-Identifier: Apache-2.0
"""Fixed extent: `width` positions under each parent, written by the format or known when packed."""

import dataclasses

import torch

from ...errors import DataError
from ..level import Extent, Placed, Positions, register


@register
@dataclasses.dataclass(frozen=True)
class Fixed(Extent):
    """`fixed<K>` or `fixed<?>`; with a stored coordinate it is `packed` (ELL)."""

    width: int | None = None

    name = "fixed"
    positional = "width"
    has_code = True
    pads = True

    @property
    def capacity(self):
        return self.width

    def refuses(self, coordinate):
        if coordinate.implicit:
            return "'fixed' needs a coordinate: without one it is 'dense'; call compress() before pack()"
        if self.width is None and coordinate.has_code and coordinate.per_position is None:
            return f"'fixed' with '{coordinate.name}' needs a width: no array shows how long a fibre is"
        return None

    def place(self, fibre):
        index = self.index(fibre)
        longest = int(index.max()) + 1 if index.numel() else 0
        width = longest if self.width is None else self.width
        if longest > width:
            self._too_small(fibre, index, width)
        if not fibre.level.padded:
            self._full(fibre, width)
        slots = fibre.parents * width
        return Placed(fibre.parent * width + index, slots, (fibre.parents, width))

    def _too_small(self, fibre, index, width):
        parent = int(fibre.parent[(index >= width).to(torch.uint8).argmax()])
        starts = fibre.starts()
        count = int(starts[parent + 1] - starts[parent])
        raise DataError(
            f"'{fibre.level.kind}' has width {width}, but {fibre.describe(parent)} holds {count}; "
            "give a larger width, or none for the longest row, or decompose() into this format and a rest"
        )

    @staticmethod
    def _full(fibre, width):
        short = fibre.starts().diff() < width
        if bool(short.any()):
            where = fibre.describe(int(short.to(torch.uint8).argmax()))
            raise DataError(f"'{fibre.level.kind}' with pad=false must be full, but {where} holds fewer than {width}")

    def read(self, buffers, parents, size, device):
        width = buffers.positions.shape[1] if self.width is None else self.width
        slots = parents * width
        position = torch.arange(slots, device=device)
        return Positions(position // max(width, 1), position % max(width, 1), slots, width=width)

    def check(self, check, buffers, parents, size):
        own = buffers.positions
        if own is None:
            return parents * self.width
        if own.ndim != 2 or own.shape[0] != parents or self.width not in (None, own.shape[1]):
            width = "width" if self.width is None else self.width
            check.fail(buffers.per_position, f"must have shape [{parents}, {width}], not {list(own.shape)}")
        return own.numel()

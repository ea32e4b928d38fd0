# SPDX-License-Identifier: Apache-2.0
"""One extent: a single position under each parent, at the parent's own position."""

import dataclasses

import torch

from ...errors import DataError
from ..level import Extent, Placed, Positions, register


@register
@dataclasses.dataclass(frozen=True)
class One(Extent):
    """`one`; with a stored coordinate it is `singleton`, the second level of COO."""

    name = "one"
    has_code = True
    follows = True

    def refuses(self, coordinate):
        return (
            None if coordinate.stored else f"'one' needs a stored coordinate, not '{coordinate.name}': use 'singleton'"
        )

    def place(self, fibre):
        count = fibre.starts().diff()
        wrong = count > 1 if fibre.level.padded else count != 1
        if bool(wrong.any()):
            parent = int(wrong.to(torch.uint8).argmax())
            raise DataError(
                f"'{fibre.level.kind}' holds one coordinate under each parent, but {fibre.describe(parent)} "
                f"has {int(count[parent])}; make the level above 'unique=False', "
                "or this one 'pad=True' where some have none"
            )
        return Placed(fibre.parent, fibre.parents, (fibre.parents,))

    def read(self, buffers, parents, size, device):
        position = torch.arange(parents, device=device)
        return Positions(position, torch.zeros_like(position), parents)

    def check(self, check, buffers, parents, size):
        if tuple(buffers["crd"].shape) != (parents,):
            check.fail("crd", f"must have shape [{parents}], one under each parent, not {list(buffers['crd'].shape)}")
        return parents

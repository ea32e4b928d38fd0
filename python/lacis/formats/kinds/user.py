# SPDX-License-Identifier: Apache-2.0
"""A level kind that a user defines, by the name of its operation."""

import dataclasses

from ..level import Coordinate, Extent, register


@register
@dataclasses.dataclass(frozen=True)
class User(Extent, Coordinate):
    """`@k`; it has no code yet."""

    symbol: str = "@kind"

    name = "kind"

    @property
    def spelling(self):
        return self.symbol

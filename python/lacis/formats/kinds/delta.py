# SPDX-License-Identifier: Apache-2.0
"""Delta coordinate: the distance to the coordinate before, in a few bits."""

import dataclasses

from ..level import Coordinate, register


@register
@dataclasses.dataclass(frozen=True)
class Delta(Coordinate):
    """`delta<bits>`; it has no code yet."""

    bits: int = 8

    name = "delta"
    stored = True
    positional = "bits"

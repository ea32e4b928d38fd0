# SPDX-License-Identifier: Apache-2.0
"""Bitmap coordinate: one bit for each coordinate of the fibre."""

import dataclasses

from ..level import Coordinate, register


@register
@dataclasses.dataclass(frozen=True)
class Bitmap(Coordinate):
    """`bitmap`; it has no code yet."""

    name = "bitmap"

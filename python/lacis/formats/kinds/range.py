# SPDX-License-Identifier: Apache-2.0
"""Range extent: the positions that an offset leaves inside the axis (the rows of a diagonal)."""

import dataclasses

from ..level import Extent, register


@register
@dataclasses.dataclass(frozen=True)
class Range(Extent):
    """`range`; it has no code yet."""

    name = "range"

    def refuses(self, coordinate):
        return None if coordinate.implicit else f"'range' knows its coordinates, leave '{coordinate.name}' out"

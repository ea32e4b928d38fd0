# SPDX-License-Identifier: Apache-2.0
"""Batch extent: values only, for heads that share one pattern."""

import dataclasses

from ..level import Extent, register


@register
@dataclasses.dataclass(frozen=True)
class Batch(Extent):
    """`batch`; it has no code yet."""

    name = "batch"

    def refuses(self, coordinate):
        return None if coordinate.implicit else f"'batch' stores values only, leave '{coordinate.name}' out"

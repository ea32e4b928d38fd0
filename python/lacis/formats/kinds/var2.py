# SPDX-License-Identifier: Apache-2.0
"""Variable extent with both ends stored: room between the segments."""

import dataclasses

from ..level import Extent, register


@register
@dataclasses.dataclass(frozen=True)
class Var2(Extent):
    """`var2` (lo and hi under each parent); it has no code yet."""

    pos: str = "i32"

    name = "var2"

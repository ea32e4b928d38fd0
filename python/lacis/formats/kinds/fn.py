# SPDX-License-Identifier: Apache-2.0
"""Computed coordinate: a function of the position and the parent."""

import dataclasses

from ..level import Coordinate, register


@register
@dataclasses.dataclass(frozen=True)
class Fn(Coordinate):
    """`fn`; it has no code yet."""

    name = "fn"

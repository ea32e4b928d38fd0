# SPDX-License-Identifier: Apache-2.0
"""Implicit coordinate: the place within the fibre; nothing is stored."""

import dataclasses

from ..level import Coordinate, register


@register
@dataclasses.dataclass(frozen=True)
class Implicit(Coordinate):
    """No coordinate is written; of a full extent this is `dense`. `crd` is their type where a companion lists them.

    It is None where the format says none.
    """

    crd: str | None = None

    name = "implicit"
    has_code = True
    implicit = True

    def place(self, fibre, placed):
        return {}

    def read(self, buffers, positions, size):
        return positions.offset, None

    def check(self, check, buffers, level, positions, size):
        pass

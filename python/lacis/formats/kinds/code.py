# SPDX-License-Identifier: Apache-2.0
"""Code coordinate: which n of m, as a few bits per entry (2:4)."""

import dataclasses

from ..level import Coordinate, register


@register
@dataclasses.dataclass(frozen=True)
class Code(Coordinate):
    """`code`; `structured<n>` is `fixed<n>*code`; it has no code yet."""

    name = "code"
    stored = True

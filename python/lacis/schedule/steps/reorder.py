# SPDX-License-Identifier: Apache-2.0
"""The verb `reorder`."""

from __future__ import annotations

import dataclasses

from .step import Variadic, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Reorder(Variadic):
    """Nest the loops in this order.

    for i: for b:  s   -->   for b: for i:  s

    A loop without a sum sinks below the walk of a row: its sums become a tile.
    """

    mnemonic = "reorder"
    loops: tuple
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `walk`."""

from __future__ import annotations

import dataclasses

from .step import Variadic, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Walk(Variadic):
    """Walk a sparse operand by these axes first: in its own order, or through its companion index.

    for j: for i in column(j):  s   -->   for i: for j in row(i):  s
    """

    mnemonic = "walk"
    operand: str
    axes: tuple
    ready = True

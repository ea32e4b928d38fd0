# SPDX-License-Identifier: Apache-2.0
"""The verb `walk`."""

from __future__ import annotations

import dataclasses

from .step import Variadic, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Walk(Variadic):
    """Walk a sparse operand by other axes, through its companion index; values are not copied.

    for j: for i in column(j):  s   -->   for i: for j in row(i):  s
    """

    mnemonic = "walk"
    values: tuple

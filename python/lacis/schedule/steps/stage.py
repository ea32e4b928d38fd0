# SPDX-License-Identifier: Apache-2.0
"""The verb `stage`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Stage(Step):
    """Keep a tile of `operand` in `place` (`shared` or `register`) while it is used.

    for j:  y += w[j] * x[j]   -->   t = x[tile]; for j:  y += w[j] * t[j]
    """

    mnemonic = "stage"
    operand: str
    place: str

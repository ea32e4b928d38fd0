# SPDX-License-Identifier: Apache-2.0
"""The verb `stage`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Stage(Step):
    """Load tiles of `operand` into `place` (`shared`) before they are multiplied.

    for j:  y += w[j] * x[j]   -->   t = x[tile]; for j:  y += w[j] * t[j]
    """

    mnemonic = "stage"
    operand: str
    place: str
    ready = True

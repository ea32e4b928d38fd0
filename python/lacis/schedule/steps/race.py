# SPDX-License-Identifier: Apache-2.0
"""The verb `race`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Race(Step):
    """Say how iterations of `loop` that meet in one output are brought together.

    parallel for i:  y[f(i)] += s   -->   segmented sum over i, then y[...] += once
    """

    mnemonic = "race"
    loop: str
    strategy: str
    ready = True

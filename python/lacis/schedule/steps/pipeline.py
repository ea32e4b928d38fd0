# SPDX-License-Identifier: Apache-2.0
"""The verb `pipeline`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Pipeline(Step):
    """Load the tiles of later iterations while this one computes.

    for j:  load(j); compute(j)   -->   load(0); for j:  load(j + 1); compute(j)
    """

    mnemonic = "pipeline"
    stages: int

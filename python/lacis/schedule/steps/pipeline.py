# SPDX-License-Identifier: Apache-2.0
"""The verb `pipeline`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Pipeline(Step):
    """Load the tiles of up to `stages` rounds of `loop` ahead of the products.

    for j:  load(j); compute(j)   -->   load(0), load(1), ...; for j:  load(j + stages); compute(j)
    """

    mnemonic = "pipeline"
    loop: str
    stages: int
    ready = True

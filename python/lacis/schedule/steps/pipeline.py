# SPDX-License-Identifier: Apache-2.0
"""The verb `pipeline`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Pipeline(Step):
    """Load the tiles of up to `stages` rounds of `loop` ahead of the products; without tiles, into registers.

    for j:  load(j); compute(j)   -->   load(0), load(1), ...; for j:  load(j + stages); compute(j)
    for p:  y += f(load(p))       -->   r = load(0);  for p:  next = load(p + 1); y += f(r); r = next
    """

    mnemonic = "pipeline"
    loop: str
    stages: int
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `stage`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Stage(Step):
    """Load tiles of `operand` into `place` (`shared`): in the rounds of `loop`, by all threads of a block.

    for k0: for k1:  y += x[k0, k1]   -->   for k0:  t = x[k0, :]; for k1:  y += t[k1]

    Without a loop, for the tiles that `tensorize` multiplies.
    """

    mnemonic = "stage"
    operand: str
    place: str
    loop: str | None = None
    ready = True

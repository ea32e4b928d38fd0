# SPDX-License-Identifier: Apache-2.0
"""The verb `roll`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Roll(Step):
    """Make one loop of a maximum and of the sums of exponentials below it, in a chain of statements (`lacis.kernel`).

    for j: m = max(m, t);  for j: o += exp(t - m) v   -->   for j: n = max(m, t); o = o exp(m - n) + exp(t - n) v; m = n

    `loop` is the loop over the positions of a row: the letter of the sum, `"j"`, or its block, `"j0"`.
    A round on tiles takes `columns` of a stored block, 64 or 128; 64, or all that there are, if it is None.
    """

    mnemonic = "roll"
    loop: str
    columns: int | None = None
    ready = True

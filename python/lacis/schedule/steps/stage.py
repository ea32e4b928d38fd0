# SPDX-License-Identifier: Apache-2.0
"""The verb `stage`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Stage(Step):
    """Load what the rounds of `loop` read of `operand` into `place`, before it is used.

    for k0: for k1:  y += x[k0, k1]   -->   for k0:  t = x[k0, :]; for k1:  y += t[k1]   (shared, by a block)
    for j: for k:  y += x[j] * z[k]   -->   for j:  t = x[j]; for k:  y += t * z[k]      (register)

    Without a loop, `shared`: tiles that `tensorize` multiplies.
    """

    mnemonic = "stage"
    operand: str
    place: str
    loop: str | None = None
    ready = True

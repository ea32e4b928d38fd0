# SPDX-License-Identifier: Apache-2.0
"""The verb `unroll`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Unroll(Step):
    """Run `factor` rounds of `loop` at once, all of them without a factor; of a sum, into `sums` sums of their own.

    for i in 4:  s[i]        -->   s[0]; s[1]; s[2]; s[3]
    for i in n:  c += s[i]   -->   for i in n by 2:  c0 += s[i]; c1 += s[i + 1]      c = c0 + c1      (2 sums)
    """

    mnemonic = "unroll"
    loop: str
    factor: int | None = None
    sums: int | None = None
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `unroll`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Unroll(Step):
    """Run `factor` rounds of `loop` at once, all of them without a factor.

    for i in 4:  s[i]   -->   s[0]; s[1]; s[2]; s[3]
    """

    mnemonic = "unroll"
    loop: str
    factor: int | None = None
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `unroll`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Unroll(Step):
    """Replicate the body of `loop` `factor` times (all of it without one).

    for i in 4:  s[i]   -->   s[0]; s[1]; s[2]; s[3]
    """

    mnemonic = "unroll"
    loop: str
    factor: int | None = None

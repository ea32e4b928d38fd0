# SPDX-License-Identifier: Apache-2.0
"""The verb `split`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Split(Step):
    """Cut `loop` into strips of `factor`: `loop0` around `loop1`.

    for i in n:  s[i]   -->   for i0 in ceil(n / 32): for i1 in 32:  s[32 * i0 + i1]
    """

    mnemonic = "split"
    loop: str
    factor: int
    ready = True

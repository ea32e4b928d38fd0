# SPDX-License-Identifier: Apache-2.0
"""The verb `jam`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Jam(Step):
    """Unroll `loop` whole; the copies share the loops inside, so what they read there is read once.

    for i in 2: for j:  s[i, j]   -->   for j:  s[0, j]; s[1, j]
    """

    mnemonic = "jam"
    loop: str
    ready = True

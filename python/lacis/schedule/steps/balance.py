# SPDX-License-Identifier: Apache-2.0
"""The verb `balance`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Balance(Step):
    """Hand the iterations of `loop` out by their amount of work, longest first.

    for i0:  row(i0)   -->   for n:  row(order[n])
    """

    mnemonic = "balance"
    loop: str
    strategy: str

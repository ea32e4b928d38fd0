# SPDX-License-Identifier: Apache-2.0
"""The verb `skew`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Skew(Step):
    """Complete sums of one round of `loop` in the next, beside its first products; with `rounds=0` each in its own.

    for j: A(j); B(j)   -->   A(0);  for j >= 1: A(j) beside B(j - 1);  B(last)

    `loop` is the one that `roll` makes of a chain, on tiles. B are products of what A made and of an operand that
    nothing else of the round takes, as o += p v is in attention.
    """

    mnemonic = "skew"
    loop: str
    rounds: int = 1
    ready = True

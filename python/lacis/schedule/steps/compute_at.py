# SPDX-License-Identifier: Apache-2.0
"""The verb `compute_at`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class ComputeAt(Step):
    """Copy what `relayout` made of the output to its place in each round of `loop`, tile by tile, and not at the end.

    for i0: for i1: s(t[i]); for i: y[i] = t[i]   -->   for i0: { for i1: s(t[i1]); for i1: y[i] = t[i1] }

    Of an output whose rows an operand lists, the zeros of the others are written in strips of the list.
    """

    mnemonic = "compute_at"
    operand: str
    loop: str
    ready = True

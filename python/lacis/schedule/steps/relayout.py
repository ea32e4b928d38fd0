# SPDX-License-Identifier: Apache-2.0
"""The verb `relayout`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Relayout(Step):
    """Copy `operand` into a transposed or padded workspace before the kernel reads it.

    y += w[j] * x[b, j]   -->   t = transpose(x); y += w[j] * t[j, b]
    """

    mnemonic = "relayout"
    operand: str

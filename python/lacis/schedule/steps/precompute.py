# SPDX-License-Identifier: Apache-2.0
"""The verb `precompute`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Precompute(Step):
    """Compute a subexpression into a workspace before the loops that read it.

    for i: for j:  y += a[i] * f(b[j])   -->   for j: t[j] = f(b[j]); for i: for j:  y += a[i] * t[j]
    """

    mnemonic = "precompute"
    expression: str
    name: str

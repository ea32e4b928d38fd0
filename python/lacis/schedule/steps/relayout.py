# SPDX-License-Identifier: Apache-2.0
"""The verb `relayout`."""

from __future__ import annotations

import dataclasses

from .layout import LayoutStep
from .step import primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Relayout(LayoutStep):
    """Copy `operand` into a workspace of another layout before the nest reads it (the output: after it was written).

    `layout` is a format of dense levels, or its text; without one the axes are stored in reverse.

    y += w[j] * x[b, j]   -->   t = transpose(x); y += w[j] * t[j, b]
    """

    mnemonic = "relayout"
    operand: str
    layout: str | None = None
    ready = True

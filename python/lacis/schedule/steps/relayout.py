# SPDX-License-Identifier: Apache-2.0
"""The verb `relayout`."""

from __future__ import annotations

import dataclasses

from .layout import layout_text, short_layout
from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Relayout(Step):
    """Copy `operand` into a workspace of another layout before the nest reads it (the output: after it was written).

    `layout` is a format of dense levels, or its text; without one the axes are stored in reverse.

    y += w[j] * x[b, j]   -->   t = transpose(x); y += w[j] * t[j, b]
    """

    mnemonic = "relayout"
    operand: str
    layout: str | None = None
    ready = True

    def __post_init__(self):
        object.__setattr__(self, "layout", layout_text(self.layout))

    def describe(self):
        if self.layout is None:
            return super().describe()
        return f'relayout("{self.operand}", "{short_layout(self.layout)}")'

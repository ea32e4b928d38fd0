# SPDX-License-Identifier: Apache-2.0
"""The verb `relayout`."""

from __future__ import annotations

import dataclasses

from ...formats import Format
from .step import Step, primitive

_HEAD = "#lacis.format<"


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
        layout = self.layout
        if isinstance(layout, str):
            Format.parse(layout)  # refuses what is no format
            layout = layout if layout.startswith(_HEAD) else f"{_HEAD}{layout}>"
        elif layout is not None:
            layout = str(layout)
        object.__setattr__(self, "layout", layout)

    def describe(self):
        if self.layout is None:
            return super().describe()
        return f'relayout("{self.operand}", "{self.layout[len(_HEAD) : -1]}")'

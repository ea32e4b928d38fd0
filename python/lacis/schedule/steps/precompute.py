# SPDX-License-Identifier: Apache-2.0
"""The verb `precompute`."""

from __future__ import annotations

import dataclasses

from .layout import layout_text, short_layout
from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Precompute(Step):
    """Sum up `part` of a sum before the others, in a nest of its own, which keeps its sums in a workspace.

    `layout` says how the workspace lies: a format of dense levels over the output's axes, or its text; without one it
    lies as the output. The loops of the nest have the part's name before theirs. A second part adds to the first.

    for i:  s += blocks;  s += rest   -->   for rest.i:  t[i] = s of rest;   for i:  s = t[i];  s += blocks
    """

    mnemonic = "precompute"
    part: str
    layout: str | None = None
    ready = True

    def __post_init__(self):
        object.__setattr__(self, "layout", layout_text(self.layout))

    def describe(self):
        if self.layout is None:
            return super().describe()
        return f'precompute("{self.part}", "{short_layout(self.layout)}")'

# SPDX-License-Identifier: Apache-2.0
"""The verb `precompute`."""

from __future__ import annotations

import dataclasses

from .layout import LayoutStep
from .step import primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Precompute(LayoutStep):
    """Sum up `part` of a sum before the others, in a nest of its own, which keeps its sums in a workspace.

    `layout` says how the workspace lies: a format of dense levels over the output's axes, or its text; without one it
    lies as the output. The loops of the nest have the part's name before theirs. A second part adds to the first.

    for i:  s += blocks;  s += rest   -->   for rest.i:  t[i] = s of rest;   for i:  s = t[i];  s += blocks
    """

    mnemonic = "precompute"
    part: str
    layout: str | None = None
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `regroup`."""

from __future__ import annotations

import dataclasses

from .layout import LayoutStep
from .step import primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Regroup(LayoutStep):
    """Walk `operand` in an execution layout: panels of rows, steps of columns, and the tiles stored in each step.

    `layout` is a format, or its text; a step has at most `capacity` tiles where it is given, and occurs again where
    there are more. The arrays are made on the device from the pattern. A layout with a `link` level reads the values
    where they lie; without one they are copied, again whenever they change.

    for j0 in row(i): tile   -->   for j0 in union of rows: tiles
    """

    mnemonic = "regroup"
    operand: str
    layout: str
    capacity: int | None = None
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `regroup`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Regroup(Step):
    """Run on a copy of the operand in an execution layout, refreshed on the device.

    for j0 in row: tile   -->   for slab in union: tile
    """

    mnemonic = "regroup"
    format: object

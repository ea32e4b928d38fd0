# SPDX-License-Identifier: Apache-2.0
"""The verb `race`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Race(Step):
    """Say how iterations of `loop` that meet in one output are brought together.

    parallel for i:  y[f(i)] += s   -->   parallel for i:  part[i] = s;  y[f] = the parts, in their order      (order)
                                    -->   parallel for i:  copy[i, f] = s;  y[f] = the copies, in their order  (private)
                                    -->   for i, carrying c:  c = (y[f] begins ? 0 : c) + s                    (segment)
                                    -->   parallel for i:  atomically y[f(i)] += s                             (atomic)
    """

    mnemonic = "race"
    loop: str
    strategy: str
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `find`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Find(Step):
    """Run over the coordinates of a level that finds each, as a bitmap does by its bit, not over its positions.

    for p in row(i) (j):  s[p, j]   -->   for j in n: p = find(i, j), where there is one:  s[p, j]
    """

    mnemonic = "find"
    loop: str
    ready = True

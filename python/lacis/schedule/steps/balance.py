# SPDX-License-Identifier: Apache-2.0
"""The verb `balance`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Balance(Step):
    """Hand out the rounds of the outermost loop and of `loop`, the second, in work lists, the heaviest rows first.

    `raster` neighbouring rounds of `loop` are worked on together, so that they share what they read. The lists are
    made from the pattern alone, for `groups` times `raster` rounds, and begin anew after them. Up to `cut` rounds of
    `loop` long rows are cut, so that each processor has as much to do, and a nest behind adds up their parts. Where
    `loop` is the first and runs over shares of stored blocks, these are handed out; `raster` and `groups` are 1, and
    the blocks of a share lie `within` so many columns, where that is given. Sums of shares that do not come out even
    for all processors are cut into up to so many `parts`, which a nest behind adds up.

    for i0: for b0: s[i0, b0]   -->   for n in processors: for (i0, b0) in list(n): s[i0, b0]
    """

    mnemonic = "balance"
    loop: str
    raster: int
    groups: int
    within: int | None = None
    cut: int | None = None
    parts: int | None = None
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `tensorize`."""

from __future__ import annotations

import dataclasses

from .step import HERE, Variadic, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Tensorize(Variadic):
    """Let `loops` be the rows, columns and depth of one product of tiles, computed with matrix instructions.

    for i1: for b1: for j1:  y[b1, i1] += w[i1, j1] * x[b1, j1]   -->   y tile += w tile * x tile
    """

    mnemonic = "tensorize"
    kind: str | None = None  # "mma": the tile of one warp, read from memory; else of warpgroups, staged
    loops: tuple = ()
    ready = True

    def __init__(self, *loops, kind=None, location=HERE, **named):
        super().__init__(kind, *loops, location=location, **named)

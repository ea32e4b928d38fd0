# SPDX-License-Identifier: Apache-2.0
"""The verb `vectorize`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Vectorize(Step):
    """Run `width` iterations of `loop` as lanes of one vector; of two loops that copy, as a tile that is transposed.

    for b in 8:  y[b] += a * x[b]                 -->   y[0:8] += a * x[0:8]
    for b in 8:  for j in 8:  t[j, b] = x[b, j]   -->   t[0:8, 0:8] = transpose(x[0:8, 0:8])
    """

    mnemonic = "vectorize"
    loop: str
    width: int
    ready = True

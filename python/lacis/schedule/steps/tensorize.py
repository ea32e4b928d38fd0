# SPDX-License-Identifier: Apache-2.0
"""The verb `tensorize`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Tensorize(Step):
    """Compute the inner dense tiles with matrix instructions (`mma`, `wgmma`, `mma_sp`).

    for i1: for b1: for j1:  y += w * x   -->   acc = mma(w tile, x tile, acc)
    """

    mnemonic = "tensorize"
    kind: str

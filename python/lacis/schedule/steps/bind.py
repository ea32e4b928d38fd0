# SPDX-License-Identifier: Apache-2.0
"""The verb `bind`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Bind(Step):
    """Let each iteration of `loop` be a unit of the GPU: `block.x` (y, z), `thread.x` (y, z), `warp`, `lane`,
    or `warpgroup`: four warps that multiply tiles together.

    for i:  s[i]   -->   s[blockIdx.x]
    """

    mnemonic = "bind"
    loop: str
    unit: str
    ready = True

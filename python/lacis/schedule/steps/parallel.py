# SPDX-License-Identifier: Apache-2.0
"""The verb `parallel`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Parallel(Step):
    """Share the iterations of `loop` among the threads of the CPU, or the blocks of the GPU.

    for i:  s[i]   -->   parallel for i:  s[i]
    """

    mnemonic = "parallel"
    loop: str
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `split_nnz`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class SplitNnz(Step):
    """Cut `loop` into equal shares of `factor` entries, wherever rows begin.

    for i: for j in row(i): s   -->   for i0 in ceil(nnz / 32): for i1 in 32 entries:  s
    """

    mnemonic = "split_nnz"
    loop: str
    factor: int
    ready = True

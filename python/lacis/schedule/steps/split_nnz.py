# SPDX-License-Identifier: Apache-2.0
"""The verb `split_nnz`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class SplitNnz(Step):
    """Cut `loop` into equal shares of `factor` entries, wherever rows begin; the entries of each row into `parts`.

    for i: for j in row(i): s   -->   for i0 in ceil(nnz / 32): for i1 in 32 entries:  s        (`i_j`, factor)
    for j in row(i):        s   -->   for j0 in ceil(row / 32): for j1 in 32 entries:  s        (`j`, factor)
                                -->   for j0 in 8: for j1 in an eighth of row(i):  s            (`j`, parts)
    """

    mnemonic = "split_nnz"
    loop: str
    factor: int | None = None
    parts: int | None = None
    ready = True

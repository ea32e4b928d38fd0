# SPDX-License-Identifier: Apache-2.0
"""The verb `fuse`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Fuse(Step):
    """One loop `outer_inner` over the pairs of two that are perfectly nested, or over all entries of rows.

    for i: for j:  s[i, j]              -->   for i_j:  s[i_j / J, i_j % J]
    s = sum over i of sum over j        -->   s = sum over i_j
    for i: for j in row(i):  y[i] += s  -->   for i_j in all entries:  i = the row of i_j;  y[i] += s
    """

    mnemonic = "fuse"
    outer: str
    inner: str
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `apart`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Apart(Step):
    """Give the rows of which the last part of a sum has entries a nest of their own, in the launch of the others.

    Where the part does not list its rows (`Dcsr` does), a companion index lists them. The loops of their nest have its
    name before theirs.

    for i:  s += ell;  s += rest   -->   for rest.i in rows(rest):  s += ell;  s += rest   for other i:  s += ell
    """

    mnemonic = "apart"
    part: str
    ready = True

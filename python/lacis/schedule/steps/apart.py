# SPDX-License-Identifier: Apache-2.0
"""The verb `apart`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Apart(Step):
    """Give the rows that the last part of a sum lists a nest of their own, in the launch of the others.

    The part's first level is compressed (`Dcsr`), so that it lists its rows; the loops of their nest have its name
    before theirs.

    for i:  s += ell;  s += rest   -->   for rest.i in rows(rest):  s += ell;  s += rest   for other i:  s += ell
    """

    mnemonic = "apart"
    part: str
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `apart`."""

from __future__ import annotations

import dataclasses

from .step import Variadic, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Apart(Variadic):
    """Give the rows of which the last part of a sum has entries a nest of their own, in the launch of the others.

    Where the part does not list its rows (`Dcsr` does), a companion index lists them. The loops of their nest have its
    name before theirs. Where the rules of a sum leave each row to one part, parts have nests already (`own` with
    `"classes"`), and all that are named share the launch of the last.

    Of an operand that is no sum the rows with at least `least` entries have a nest that `part` names: a companion index
    lists them.

    for i:  s += ell;  s += rest   -->   for rest.i in rows(rest):  s += ell;  s += rest   for other i:  s += ell
    for i:  s += w                 -->   for long.i in rows of least entries:  s += w      for other i:  s += w
    """

    mnemonic = "apart"
    part: str
    others: tuple = ()
    least: int | None = dataclasses.field(default=None, kw_only=True)
    ready = True

# SPDX-License-Identifier: Apache-2.0
"""The verb `own`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Own(Step):
    """The levels of a sparse operand own the elements of the output in this form, whatever is ranked best.

    for i in all rows:  s   -->   for i in the rows that the operand lists:  s

    `form` is `"list"`, `"permute"`, `"push"`, `"share"`, `"classes"` (of a sum each of whose rows lies in one part) or
    `"companion"`. `why` is the reason that a compiled kernel tells; it changes nothing.
    """

    mnemonic = "own"
    operand: str
    form: str
    why: str = dataclasses.field(default="", compare=False)
    ready = True

    def describe(self) -> str:
        """The verb as it is written in a schedule; the reason as a comment.

        >>> from lacis import steps
        >>> print(steps.Own("0", "list", why="level 0 lists each i once").describe())
        own("0", "list")  # level 0 lists each i once
        """
        written = dataclasses.replace(self, why="")
        verb = super(Own, written).describe()
        return f"{verb}  # {self.why}" if self.why else verb

# SPDX-License-Identifier: Apache-2.0
"""Bindings: coordinates that a format computes from its axes (`let d = j - i`); they have no code yet."""

from __future__ import annotations

import dataclasses

from .digit import Digit


@dataclasses.dataclass(frozen=True)
class Affine:
    """`d = j - i`: the sum or difference of two axes (or earlier bindings)."""

    name: str = dataclasses.field(compare=False)
    left: int = 0
    sign: str = "+"
    right: int = 0

    kind = "affine"

    def text(self, names) -> str:
        return f"{self.name} = {names[self.left]} {self.sign} {names[self.right]}"


@dataclasses.dataclass(frozen=True)
class Slot:
    """`s = slot(j in i)`: the place of an entry among those of its fibre, in coordinate order."""

    name: str = dataclasses.field(compare=False)
    axis: int = 0
    within: tuple[Digit, ...] = ()

    kind = "slot"

    def text(self, names) -> str:
        return f"{self.name} = slot({names[self.axis]} in {', '.join(d.text(names) for d in self.within)})"


@dataclasses.dataclass(frozen=True)
class Rank:
    """`r = rank(i by nnz within 128)`: the place of a row when rows are sorted by their number of entries."""

    name: str = dataclasses.field(compare=False)
    axis: int = 0
    within: int | None = None

    kind = "rank"

    def text(self, names) -> str:
        within = "" if self.within is None else f" within {self.within}"
        return f"{self.name} = rank({names[self.axis]} by nnz{within})"

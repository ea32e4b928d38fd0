# SPDX-License-Identifier: Apache-2.0
"""Bindings: coordinates that a format computes from its axes (`let d = j - i`).

A bound name has coordinates 0 .. size - 1 like an axis; of a difference they begin at the smallest one. With `names` is
meant what a digit may refer to: the axes, then the bindings, each with a coordinate and a size.
"""

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
    has_code = True

    def text(self, names) -> str:
        return f"{self.name} = {names[self.left]} {self.sign} {names[self.right]}"

    def size(self, sizes) -> int:
        """How many coordinates it has, for names of these sizes."""
        return max(sizes[self.left] + sizes[self.right] - 1, 0)

    def bias(self, sizes) -> int:
        """What is added so that the smallest coordinate is 0."""
        return max(sizes[self.right] - 1, 0) if self.sign == "-" else 0

    def of(self, coordinates, sizes):
        """Its coordinate, where those of the names are known."""
        left, right = coordinates[self.left], coordinates[self.right]
        return (left - right if self.sign == "-" else left + right) + self.bias(sizes)

    def determines(self, known) -> int | None:
        """The name that follows from this one and those in `known`; None when none does."""
        if (self.left in known) == (self.right in known):
            return None
        return self.right if self.left in known else self.left

    def solve(self, name: int, coordinates, own, sizes):
        """The coordinate of that name, where `own` is the coordinate of the binding."""
        own = own - self.bias(sizes)
        if name == self.left:
            return own + coordinates[self.right] if self.sign == "-" else own - coordinates[self.right]
        return coordinates[self.left] - own if self.sign == "-" else own - coordinates[self.left]

    def renamed(self, place) -> "Affine":
        """The same over other names: `place` maps old numbers to new ones."""
        return dataclasses.replace(self, left=place(self.left), right=place(self.right))


@dataclasses.dataclass(frozen=True)
class Slot:
    """`s = slot(j in i)`: the place of an entry among those of its fibre, in coordinate order."""

    name: str = dataclasses.field(compare=False)
    axis: int = 0
    within: tuple[Digit, ...] = ()

    kind = "slot"
    has_code = False

    def determines(self, known) -> int | None:
        """No axis follows from a place."""
        return None

    def text(self, names) -> str:
        return f"{self.name} = slot({names[self.axis]} in {', '.join(d.text(names) for d in self.within)})"


@dataclasses.dataclass(frozen=True)
class Rank:
    """`r = rank(i by nnz within 128)`: the place of a row when rows are sorted by their number of entries."""

    name: str = dataclasses.field(compare=False)
    axis: int = 0
    within: int | None = None

    kind = "rank"
    has_code = False

    def determines(self, known) -> int | None:
        """The axis whose coordinates are sorted, by the stored order."""
        return None if self.axis in known else self.axis

    def text(self, names) -> str:
        within = "" if self.within is None else f" within {self.within}"
        return f"{self.name} = rank({names[self.axis]} by nnz{within})"


def sizes_of(bindings, shape) -> tuple[int, ...]:
    """The sizes of the axes and of the bindings."""
    sizes = list(shape)
    for binding in bindings:
        sizes.append(binding.size(sizes))
    return tuple(sizes)


def with_bindings(bindings, axes, shape) -> list:
    """The coordinates of the axes and of the bindings.

    >>> d = Affine("d", 1, "-", 0)
    >>> with_bindings([d], [2, 0], (3, 4)), sizes_of([d], (3, 4))
    ([2, 0, 0], (3, 4, 6))
    """
    found, sizes = list(axes), list(shape)
    for binding in bindings:
        found.append(binding.of(found, sizes))
        sizes.append(binding.size(sizes))
    return found


def solve(bindings, rank: int, levels, coordinates, sizes) -> list:
    """The coordinates of the axes, where `coordinates` are those that the levels know of each name."""
    known = {digit.axis for level in levels for digit in level.digits}
    found = list(coordinates)
    for number in reversed(range(len(bindings))):
        name = bindings[number].determines(known)
        if rank + number in known and name is not None:
            found[name] = bindings[number].solve(name, found, found[rank + number], sizes)
            known.add(name)
    return found[:rank]

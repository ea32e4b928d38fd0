# SPDX-License-Identifier: Apache-2.0
"""Bindings: coordinates that a format computes from its axes (`let d = j - i`).

A bound name has coordinates 0 .. size - 1 like an axis; of a difference they begin at the smallest one. With names is
meant what a digit may refer to: the axes, then the bindings, each with a coordinate and a size.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import torch

from .digit import Digit


class Binding:
    """What bindings share. A class has `name`, `text`, `renamed`, and what follows."""

    kind: ClassVar[str]
    array: ClassVar[str | None] = None  # that it stores, under the number of its first level

    def size(self, sizes) -> int:
        """How many coordinates it has, for names of these sizes."""
        raise NotImplementedError

    def check_sizes(self, sizes) -> None:
        """Raise `FormatError` where names of these sizes have coordinates that it cannot tell apart."""

    def of(self, coordinates, sizes) -> torch.Tensor:
        """Its coordinate for each entry, where int64 [n] `coordinates` are those of the names before it."""
        raise NotImplementedError

    def determines(self, known) -> tuple[int, ...]:
        """The names that follow from this one and those in `known`."""
        return ()

    def solve(self, name: int, coordinates, own, sizes, array) -> torch.Tensor:
        """The coordinate of that name, where `own` is the coordinate of the binding and `array` what it stores."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Affine(Binding):
    """`d = j - i`: the sum or difference of two axes (or earlier bindings)."""

    name: str = dataclasses.field(compare=False)
    left: int = 0
    sign: str = "+"
    right: int = 0

    kind = "affine"

    def text(self, names) -> str:
        return f"{self.name} = {names[self.left]} {self.sign} {names[self.right]}"

    def size(self, sizes):
        return max(sizes[self.left] + sizes[self.right] - 1, 0)

    def bias(self, sizes) -> int:
        """What is added so that the smallest coordinate is 0."""
        return max(sizes[self.right] - 1, 0) if self.sign == "-" else 0

    def of(self, coordinates, sizes):
        left, right = coordinates[self.left], coordinates[self.right]
        return (left - right if self.sign == "-" else left + right) + self.bias(sizes)

    def determines(self, known):
        if (self.left in known) == (self.right in known):
            return ()
        return (self.right if self.left in known else self.left,)

    def solve(self, name, coordinates, own, sizes, array=None):
        own = own - self.bias(sizes)
        if name == self.left:
            return own + coordinates[self.right] if self.sign == "-" else own - coordinates[self.right]
        return coordinates[self.left] - own if self.sign == "-" else own - coordinates[self.left]

    def renamed(self, place) -> "Affine":
        """The same over other names: `place` maps old numbers to new ones."""
        return dataclasses.replace(self, left=place(self.left), right=place(self.right))


@dataclasses.dataclass(frozen=True)
class Slot(Binding):
    """`s = slot(j in i)`: the place of an entry among those of its fibre, in coordinate order."""

    name: str = dataclasses.field(compare=False)
    axis: int = 0
    within: tuple[Digit, ...] = ()

    kind = "slot"

    def text(self, names) -> str:
        return f"{self.name} = slot({names[self.axis]} in {', '.join(d.text(names) for d in self.within)})"

    def size(self, sizes):
        return sizes[self.axis]

    def of(self, coordinates, sizes):
        keys = [digit.of(coordinates[digit.axis]) for digit in self.within] + [coordinates[self.axis]]
        order = torch.arange(keys[0].numel(), device=keys[0].device)
        for key in reversed(keys):
            order = order[torch.argsort(key[order], stable=True)]
        begins = _changes([key[order] for key in keys[:-1]])
        place = torch.cumsum(begins | _changes([keys[-1][order]]), 0) - 1
        first = torch.cummax(torch.where(begins, place, 0), 0).values if place.numel() else place
        return torch.empty_like(order).index_copy(0, order, place - first)

    def renamed(self, place) -> "Slot":
        """The same over other names: `place` maps old numbers to new ones."""
        within = tuple(dataclasses.replace(digit, axis=place(digit.axis)) for digit in self.within)
        return dataclasses.replace(self, axis=place(self.axis), within=within)


@dataclasses.dataclass(frozen=True)
class Rank(Binding):
    """`r = rank(i by nnz within 128)`: the place of a row when rows are sorted by their number of entries."""

    name: str = dataclasses.field(compare=False)
    axis: int = 0
    within: int | None = None

    kind = "rank"
    array = "perm"

    def text(self, names) -> str:
        within = "" if self.within is None else f" within {self.within}"
        return f"{self.name} = rank({names[self.axis]} by nnz{within})"

    def size(self, sizes):
        return sizes[self.axis]

    def order(self, coordinates, sizes) -> torch.Tensor:
        """int64 [size]: the coordinate of the axis at each place. It is what the binding stores."""
        count = torch.bincount(coordinates[self.axis], minlength=sizes[self.axis])
        order = torch.argsort(count, descending=True, stable=True)
        return order if self.within is None else order[torch.argsort(order // self.within, stable=True)]

    def of(self, coordinates, sizes):
        order = self.order(coordinates, sizes)
        place = torch.empty_like(order)
        place[order] = torch.arange(order.numel(), device=order.device)
        return place[coordinates[self.axis]]

    def determines(self, known):
        return () if self.axis in known else (self.axis,)

    def solve(self, name, coordinates, own, sizes, array):
        size = array.numel()
        if not size:
            return torch.full_like(own, size)
        return torch.where(own < size, array.long()[own.clamp(max=size - 1)], size)  # `size` is outside

    def check(self, check, array, sizes) -> None:
        """Refuse an array that is no permutation, with `DataError`."""
        size = sizes[self.axis]
        if tuple(array.shape) != (size,):
            check.fail(self.array, f"must have shape [{size}], not {list(array.shape)}")
        check.none(self.array, (array < 0) | (array >= size), f"{{value}} is out of range, the axis has {size}", array)
        seen = torch.bincount(array.long(), minlength=size)
        check.none(self.array, seen[array.long()] > 1, "coordinate {value} is there twice", array)

    def renamed(self, place) -> "Rank":
        """The same over other names: `place` maps old numbers to new ones."""
        return dataclasses.replace(self, axis=place(self.axis))


def _changes(keys) -> torch.Tensor:
    """bool [n]: an element differs from the one before it, in one of the keys."""
    change = torch.zeros(keys[0].shape, dtype=torch.bool, device=keys[0].device)
    change[:1] = True
    for key in keys:
        change[1:] |= key[1:] != key[:-1]
    return change


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


def solve(bindings, rank: int, levels, coordinates, sizes, arrays) -> list:
    """The coordinates of the axes, where `coordinates` are those that the levels know of each name.

    `arrays` has, for each binding, what it stores, or None.
    """
    known = {digit.axis for level in levels for digit in level.digits}
    found = list(coordinates)
    for number in reversed(range(len(bindings))):
        for name in bindings[number].determines(known) if rank + number in known else ():
            found[name] = bindings[number].solve(name, found, found[rank + number], sizes, arrays[number])
            known.add(name)
    return found[:rank]

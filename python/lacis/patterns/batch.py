# SPDX-License-Identifier: Apache-2.0
"""Values in copies that share a pattern: the heads of attention, the samples of a batch."""

from __future__ import annotations

import dataclasses
import math
import re

import torch

from ..formats import Format
from ..formats.batch import below
from .place import same_place


def count_copies(format, shape) -> int:
    """How many copies of its values a format has for a tensor of `shape`."""
    return math.prod([level.copies(shape) for level in format.batch])


def of_all_copies(structure, axes, valid) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Coordinates and flags of one pattern for the values of every copy, one copy after the other.

    >>> from lacis import Pattern
    >>> p = Pattern.from_mask(torch.eye(2, dtype=torch.bool), "(i, j) -> (i : dense, j : compressed)").batched([2], "h")
    >>> [axis.tolist() for axis in p.part().coordinates()[0]]
    [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    """
    levels, shape = structure.format.batch, structure.shape
    times = count_copies(structure.format, shape)
    axes = [axis.repeat(times) for axis in axes]
    number = torch.arange(times, device=valid.device).repeat_interleave(len(valid))
    for digit in reversed([digit for level in levels for digit in level.digits]):
        size = max(digit.extent(shape), 1)
        axes[digit.axis], number = number % size, number // size
    return axes, valid.repeat(times)


def in_all_copies(structure, index: torch.Tensor) -> torch.Tensor:
    """Places in the flat values of one copy, as those in the values of every copy."""
    size = math.prod(structure.block_shape)
    first = torch.arange(count_copies(structure.format, structure.shape), device=index.device) * size
    return (first[:, None] + index).reshape(-1)


def renumbered(arrays: dict[str, torch.Tensor], by: int) -> dict[str, torch.Tensor]:
    """Arrays whose names end in the number of a level, of levels that come `by` later."""
    found = {}
    for name, tensor in arrays.items():
        stem, number = re.fullmatch(r"(.*?)([0-9]+)", name).groups()
        found[f"{stem}{int(number) + by}"] = tensor
    return found


def below_batch(pattern, sizes: tuple[int, ...], letters: str):
    """`Pattern.batched`, made anew."""
    parts = {name: part.batched(sizes, letters) for name, part in pattern.parts.items()}
    made = type(pattern)(pattern.format.batched(letters), parts)
    made._shared = pattern, len(letters)
    if pattern.device.type != "cpu":
        made.uneven = (*(False for _ in letters), *pattern.uneven)
    return made


def one_copy(structure):
    """What the copies of a batch share: the same arrays, without the levels and axes of the batch."""
    levels = len(structure.format.batch)
    return dataclasses.replace(
        structure,
        format=below(structure.format, levels),
        shape=structure.shape[levels:],
        buffers=renumbered(structure.buffers, -levels),
    )


def derived_below(pattern, levels: int, text: str, part: str) -> dict[str, torch.Tensor]:
    """The arrays of a companion of so many levels of a batch over `pattern`: those of its own companion."""
    return renumbered(pattern.derived(below(Format.parse(text), levels).text, part), levels)


@dataclasses.dataclass
class SharedPlaces:
    """The places of entries in the pattern that all copies share."""

    axes: list[torch.Tensor]  # int64 [places] for each axis, 0 along those of the batch
    copy: torch.Tensor  # int64 [n]: which copy each entry is of
    place: torch.Tensor  # int64 [n]: the number of its place
    distinct: bool  # no two places have the same coordinates

    def filled(self, structure, at: torch.Tensor, source: torch.Tensor | None):
        """Where entries are in the flat values of a part, and which they are (None for all).

        `at` and `source` say that of the places.
        """
        where = torch.full((self.axes[0].numel(),), -1, dtype=torch.int64, device=at.device)
        where[slice(None) if source is None else source] = at
        own = where[self.place]
        at = self.copy * math.prod(structure.block_shape) + own
        mine = (own >= 0).nonzero().reshape(-1)
        return (at, None) if mine.numel() == own.numel() else (at[mine], mine)


def shared_places(levels, shape, axes, distinct: bool) -> SharedPlaces:
    """The places of entries at `axes` (int64 [n] per axis) below the `levels` of a batch.

    An entry that is there twice in one copy (`distinct` says that none is) has two places, which others may use too.
    """
    copy = torch.zeros_like(axes[0])
    for level in levels:
        copy = copy * level.copies(shape) + level.coordinate_of(axes, shape)
    batch = {digit.axis for level in levels for digit in level.digits}
    own = [torch.zeros_like(axis) if n in batch else axis for n, axis in enumerate(axes)]
    sizes = [1 if n in batch else size for n, size in enumerate(shape)]
    if not distinct and copy.numel():
        which = _occurrence(shape, axes)
        own, sizes = [*own, which], [*sizes, int(which.max()) + 1]
        distinct = sizes[-1] == 1
    order, again = same_place(sizes, own)
    number = torch.cumsum(~again, 0) - 1
    place = number if order is None else torch.empty_like(number).index_put((order,), number)
    first = (~again).nonzero().reshape(-1) if order is None else order[~again]
    return SharedPlaces([axis[first] for axis in own[: len(shape)]], copy, place, distinct)


def _occurrence(shape, axes) -> torch.Tensor:
    """int64 [n]: how many entries before each are at its place."""
    order, again = same_place(shape, axes)
    index = torch.arange(len(again), device=again.device)
    which = index - torch.cummax(torch.where(again, 0, index), 0).values
    return which if order is None else torch.empty_like(which).index_put((order,), which)

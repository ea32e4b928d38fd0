# SPDX-License-Identifier: Apache-2.0
"""Gives entries their positions, level by level, by sorting and scanning on the tensor's device."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import torch

from ..errors import FormatError
from ..formats import Csf, Format, Level
from ..formats.bindings import with_bindings
from ..formats.digit import quotient, remainder
from ..formats.level import Fibre
from .announce import announce


_SORTED = 2**24  # so many numbers a GPU sorts in less time than the host would wait for its answer that they are


@dataclasses.dataclass
class Sorted:
    """Entries in level order, seen by the levels above the stored blocks."""

    levels: tuple[Level, ...]
    sizes: list[int]
    crds: list[torch.Tensor]  # int64 [n] for each level
    find_begins: Callable[[], list[torch.Tensor]]  # what `begins` is, where somebody asks
    order: torch.Tensor | None  # int64 [n]: where each sorted entry came from; None when nothing moved
    device: torch.device
    key: torch.Tensor | None = None  # [n]: the coordinates of all levels in one integer, where one holds them

    @functools.cached_property
    def begins(self) -> list[torch.Tensor]:
        """bool [n] for each level: the first entry of its position."""
        return self.find_begins()

    def begins_of(self, number: int) -> torch.Tensor:
        """The same of one level alone, at once where it is the last and all coordinates make a position."""
        is_last = number == len(self.levels) - 1 and all(level.coordinate.unique for level in self.levels)
        return self.begins[number] if self.key is None or not is_last else _change(self.key)


@dataclasses.dataclass
class Placement:
    """Where the entries went: flattened buffer names to int64 arrays, and a slot for each sorted entry."""

    buffers: dict[str, torch.Tensor]
    pos: torch.Tensor
    slots: int
    largest: int  # the largest number that indexes anything, slots and coordinates
    count_named: Callable[[], int] | None  # how many slots coordinates name, where these are those of entries


def sort_entries(format: Format, shape, axes, link: torch.Tensor | None = None, ordered: bool = False) -> Sorted:
    """Entries in level order. `axes` are int64 [n] coordinates, one tensor for each axis.

    `link` is the coordinate of a `link` level, the slot of another pattern. `ordered` says that they come so.
    """
    levels = format.prefix
    axes, shape = with_bindings(format.bindings, axes, shape), format.name_sizes(shape)
    crds, sizes = [], []
    for level in levels:
        crds.append(level.coordinate_of(axes, shape) if level.digits else link)
        sizes.append(level.size(shape) if level.digits else _bound(link))
    if max(sizes) >= 2**62:
        raise FormatError(f"a level of '{format}' has {max(sizes)} coordinates, too many for 64 bits; fuse fewer axes")
    crds, order, key = (crds, None, None) if ordered else _in_level_order(crds, sizes)
    return Sorted(levels, sizes, crds, lambda: _begins(format, levels, _changes(crds)), order, axes[0].device, key)


def same_place(shape, axes) -> tuple[torch.Tensor | None, torch.Tensor]:
    """The order of entries by their coordinates, None where it is theirs, and bool: as the one before in that order."""
    entries = sort_entries(Csf(len(shape)), shape, axes)
    return entries.order, ~entries.begins_of(len(entries.levels) - 1)


def _bound(link: torch.Tensor) -> int:
    return int(link.max()) + 1 if link.numel() else 0


def _in_level_order(crds, sizes) -> tuple[list[torch.Tensor], torch.Tensor | None, torch.Tensor | None]:
    """The coordinates of each level sorted by all of them, and the stable permutation; None when they were already.

    And the one of `fused_keys` in that order, None where there are more.
    """
    keys = fused_keys(crds, sizes)
    order = None
    for key in reversed(keys):
        moved = key if order is None else key[order]
        if moved.numel() < 2:
            continue
        asks = moved.device.type == "cpu" or moved.numel() > _SORTED
        if asks and not bool((moved[1:] < moved[:-1]).any()):
            continue
        found, step = torch.sort(moved, stable=True)
        if len(keys) == 1:
            return _apart(found, sizes), step, found
        order = step if order is None else order[step]
    key = keys[0] if len(keys) == 1 else None
    return crds if order is None else [crd[order] for crd in crds], order, key


def _apart(key: torch.Tensor, sizes) -> list[torch.Tensor]:
    """The coordinates that one of `fused_keys` was joined from: read in order, where a gather would jump about."""
    crds = []
    for size in reversed(sizes[1:]):
        crds.append(remainder(key, size).long())
        key = quotient(key, size)
    return [key.long(), *reversed(crds)]


def fused_keys(crds, sizes) -> list[torch.Tensor]:
    """Neighbouring coordinates joined into as few integers as hold them."""
    keys: list[torch.Tensor] = []
    room = 0
    for crd, size in zip(crds, sizes):
        if keys and room * max(size, 1) < 2**62:
            keys[-1] = torch.add(crd, keys[-1], alpha=size)
            room *= max(size, 1)
        else:
            keys.append(crd)
            room = max(size, 1)
    if len(keys) > 1 or room >= 2**31:
        return keys
    return [keys[0].to(torch.int16 if room < 2**15 else torch.int32)]


def _changes(crds) -> list[torch.Tensor]:
    """For each level: does the entry differ from the one before in this level or one above?"""
    changes = []
    for change in map(_change, crds):
        changes.append(change | changes[-1] if changes else change)
    return changes


def _change(numbers: torch.Tensor) -> torch.Tensor:
    """bool [n]: is it another number than the one before?"""
    change = torch.ones(numbers.shape, dtype=torch.bool, device=numbers.device)
    torch.ne(numbers[1:], numbers[:-1], out=change[1:])
    return change


def _begins(format: Format, levels, changes) -> list[torch.Tensor]:
    """For each level: is the entry the first of its position?

    A unique level has a position per coordinate. One that is not unique is looked at together with the levels
    that follow it: a position for each tuple of their coordinates, repeated as the level below demands.
    """
    begins: list[torch.Tensor] = []
    for n, level in enumerate(levels):
        flags = changes[n]
        if not level.coordinate.unique:
            last = n
            while last + 1 < len(levels) and levels[last + 1].extent.follows:
                last += 1
            flags = _repeats(format, levels, changes, last)
        begins.append(flags | begins[-1] if begins else flags)
    return begins


def _repeats(format: Format, levels, changes, last: int) -> torch.Tensor:
    if last + 1 == len(levels):
        return torch.ones_like(changes[last]) if format.keeps_duplicates else changes[last]
    room = levels[last + 1].extent.capacity
    if room is None:
        return changes[last]
    return changes[last] | (changes[last + 1] & (_index_within(changes[last + 1], changes[last]) % room == 0))


def _index_within(begins: torch.Tensor, outer: torch.Tensor) -> torch.Tensor:
    """int64 [n]: the number of positions since the last `outer` one began."""
    index = torch.cumsum(begins, 0) - 1
    if not index.numel():
        return index
    return index - torch.cummax(torch.where(outer, index, 0), 0).values


def place(format: Format, shape, entries: Sorted, is_each: bool = False) -> Placement:
    """Positions and arrays of all levels above the stored blocks; `is_each` says that no two entries share a slot.

    Raises `DataError` when an entry finds no room, naming the fibre and its count.
    """
    n = entries.crds[0].numel()
    parents, parent = 1, torch.zeros(n, dtype=torch.int64, device=entries.device)
    moved: torch.Tensor | None = None  # int64 [n]: where each entry stood before those of positions above were sorted
    buffers: dict[str, torch.Tensor] = {}
    largest = max([*shape, *entries.sizes, 1])
    for number, level in enumerate(entries.levels):
        if number and not entries.levels[number - 1].coordinate.ordered:
            parent, order = torch.sort(parent, stable=True)
            entries, moved = _reordered(entries, order), order if moved is None else moved[order]
        begins = functools.partial(entries.begins_of, number)
        fibre = Fibre(level, parents, parent, entries.crds[number], begins, entries.sizes[number])
        fibre.is_each = is_each and all(below.extent.follows for below in entries.levels[number + 1 :])
        fibre.describe = lambda p, at=number, where=parent: _describe(format, entries, at, where, p)
        if "pos" in level.buffers():
            announce(parents + 1, level.kind, str(format))
        placed = level.extent.place(fibre)
        made = {**placed.buffers, **level.coordinate.place(fibre, placed)}
        buffers.update({f"{name}{number}": made[name] for name in level.buffers()})
        parents, parent = placed.slots, placed.pos
        largest = max(largest, parents)
    parent = parent if moved is None else torch.empty_like(parent).index_copy(0, moved, parent)
    is_of_entries = level.padded and level.coordinate.stored and not (level.extent.gaps or level.coordinate.fills)
    count_named = (lambda: fibre.first.numel()) if is_of_entries else None
    return Placement(buffers, parent, parents, max(largest, parents * math.prod(format.tile)), count_named)


def _reordered(entries: Sorted, order: torch.Tensor) -> Sorted:
    """The entries by the position of a level whose coordinates have no order; those of one position stay together."""
    take = lambda each: [tensor[order] for tensor in each]
    return dataclasses.replace(entries, crds=take(entries.crds), find_begins=lambda: take(entries.begins), key=None)


def _describe(format: Format, entries: Sorted, number: int, parent: torch.Tensor, which: int) -> str:
    """A parent position in words: `row 5`, or the coordinates of the levels above it."""
    if number == len(format.batch):
        return "the whole tensor"
    first = int((parent == which).to(torch.uint8).argmax()) if parent.numel() else 0
    words = []
    for level, crd in list(zip(entries.levels[:number], entries.crds))[len(format.batch) :]:
        crd = int(crd[first]) if bool((parent == which).any()) else which
        digit = level.digits[0]
        if len(level.digits) == 1 and number == 1 and format.rank == 2 and not digit.mod and digit.axis < 2:
            return f"{'block ' if digit.div > 1 else ''}{('row', 'column')[digit.axis]} {crd}"
        names = ", ".join(d.text(format.names) for d in level.digits)
        words.append(f"{names} = {crd}")
    return "the fibre at " + ", ".join(words)


def fits(entries: Sorted) -> torch.Tensor:
    """bool [n] over sorted entries: is it among the first of its fibre at every level of limited room?"""
    accept = torch.ones_like(entries.begins[0])
    outer = torch.zeros_like(accept)
    outer[:1] = True
    for level, begins in zip(entries.levels, entries.begins):
        room = level.extent.capacity
        if room is not None:
            accept &= _index_within(begins, outer) < room
        outer = begins
    return accept

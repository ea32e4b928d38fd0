# SPDX-License-Identifier: Apache-2.0
"""The arrays of one format: which slot holds which coordinates."""

from __future__ import annotations

import dataclasses
import functools
import math

import torch

from ..formats import Format
from ..formats.bindings import with_bindings
from ..formats.level import Buffers
from .axes import add_digits, axes_of_slots
from .batch import count_copies, in_all_copies, of_all_copies, renumbered
from .check import check_structure
from .padding import bitmap
from .place import place, same_place, sort_entries
from .room import without_room
from .transforms import outside_transforms
from .widths import asked_width, fitted, with_types


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """One format's arrays for one shape.

    `buffers` maps names (`pos1`, `crd1`) to integer tensors, `slots` is the number of stored blocks, `valid` is
    bool [slots, *tile], True at entries, or None when every slot that the coordinates name is an entry. All copies of
    the values in a batch share them; `entries` is the number of entries of one copy.
    """

    format: Format
    shape: tuple[int, ...]
    buffers: dict[str, torch.Tensor]
    slots: int
    device: torch.device
    valid: torch.Tensor | None = None
    entries: int | None = None
    distinct: bool = False  # known to have no two entries at one place
    has_room: bool = False  # there may be slots behind the last position: coordinates -1, values 0

    @staticmethod
    def of_values(format: Format, shape, buffers, values, valid=None, has_room: bool = False) -> "Structure":
        """The structure that arrays say of `values`, whose sizes are those of a batch, slots, and a stored block."""
        slots = values.shape[len(format.batch)]
        return Structure(format, tuple(shape), buffers, slots, values.device, valid, has_room=has_room)

    @property
    def values_shape(self) -> tuple[int, ...]:
        return (*[level.copies(self.shape) for level in self.format.batch], *self.block_shape)  # torch.compile reads it

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Of the values of one copy: the slots, then the sizes of a stored block."""
        return (self.slots, *self.format.tile)

    @property
    def sides(self) -> tuple[int, int]:
        """How many rows and columns a stored block has, in whichever order its levels come."""
        levels = self.format.levels[len(self.format.prefix) :]
        tile = {level.digits[0].axis: level.digits[0].mod for level in levels}
        rows, columns = range(len(self.shape))[-2:]
        return tile.get(rows, 1), tile.get(columns, 1)

    @property
    def needs_valid(self) -> bool:
        """Must padding be in `valid`, too, for kernels that locate coordinates without a look at the arrays?"""
        located = [level for level in self.format.prefix if level.extent.covers]
        return not self.format.levels[-1].shows_entries and any(not level.coordinate.implicit for level in located)

    @property
    def is_exact(self) -> bool:
        """Is each slot known to hold one entry?"""
        plain = not self.format.tile and not self.format.batch and not self.has_room
        return plain and self.entries is not None and self.entries == self.slots

    @functools.cached_property
    def kernel_arrays(self) -> dict[str, torch.Tensor]:
        """What kernels read of the pattern: the arrays, and `valid`, empty where every stored value is an entry."""
        if self.valid is not None:
            return {**self.buffers, "valid": self.valid}
        with outside_transforms((), "'valid'"):
            return {**self.buffers, "valid": torch.zeros(0, dtype=torch.bool, device=self.device)}

    def array(self, name: str) -> torch.Tensor:
        """One of what kernels read; `valid` is made where one reads it."""
        found = self.buffers.get(name)
        return self.kernel_arrays[name] if found is None else found

    def of_level(self, number: int) -> Buffers:
        """A level's own arrays, by their short names."""
        level = self.format.levels[number]
        arrays = {name: self.buffers[f"{name}{number}"] for name in level.buffers()}
        return Buffers(arrays, per_position=level.coordinate.per_position, exact=self.is_exact)

    def slot_axes(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """The first axis coordinates of each stored block, int64 [slots] per axis, and bool [slots]: not padding.

        They are 0 along the axes of a batch.
        """
        return axes_of_slots(self)

    def tile_axes(self) -> list[torch.Tensor]:
        """What each place of a stored block adds to the axis coordinates, int64 [prod(tile)] per axis."""
        levels = self.format.levels[len(self.format.prefix) :]
        crd = torch.arange(math.prod(self.format.tile), device=self.device)
        axes = [torch.zeros_like(crd) for _ in self.shape]
        for level in reversed(levels):
            size = level.size(self.shape)
            add_digits(level, self.shape, axes, crd % size)
            crd = crd // size
        return axes

    def coordinates(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Axis coordinates of every stored value, int64 [prod(values_shape)] per axis, and bool: is an entry."""
        found = self.pattern_coordinates()
        return of_all_copies(self, *found) if self.format.batch else found

    def pattern_coordinates(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """The same of one copy of the values."""
        axes, valid = self.slot_axes()
        if self.format.tile:
            tile = self.tile_axes()
            axes = [(a[:, None] + t[None, :]).reshape(-1) for a, t in zip(axes, tile)]
            valid = valid[:, None].expand(-1, math.prod(self.format.tile)).reshape(-1)
            for axis, length in zip(axes, self.shape):
                valid = valid & (axis < length)
        return axes, valid if self.valid is None else valid & self.valid.reshape(-1)

    def entry_axes(self) -> tuple[torch.Tensor | None, list[torch.Tensor]]:
        """The places of the entries in the flat values, int64 [n], and their axis coordinates, int64 [n] per axis.

        The places are None where they are all, in order.
        """
        index, axes = self._pattern_entries()
        if not self.format.batch:
            return index, axes
        index = torch.arange(axes[0].numel(), device=self.device) if index is None else index
        return in_all_copies(self, index), of_all_copies(self, axes, index)[0]

    def _pattern_entries(self) -> tuple[torch.Tensor | None, list[torch.Tensor]]:
        if self.valid is None or not self.format.tile:
            axes, valid = self.pattern_coordinates()
            if self.entries == valid.numel() or (self.entries is None and bool(valid.all())):
                return None, axes
            index = valid.nonzero().reshape(-1)
            return index, [axis[index] for axis in axes]
        index = self.valid.reshape(-1).nonzero().reshape(-1)
        size = math.prod(self.format.tile)
        slot = index // size
        (first, named), inside = self.slot_axes(), self.tile_axes()
        axes = [a[slot] + t[index - slot * size] for a, t in zip(first, inside)]
        named = named[slot]
        for axis, length in zip(axes, self.shape):
            named = named & (axis < length)
        return (index, axes) if bool(named.all()) else (index[named], [axis[named] for axis in axes])

    @functools.cached_property
    def nnz(self) -> int:
        own = int(self.pattern_coordinates()[1].sum()) if self.entries is None else self.entries
        return own * count_copies(self.format, self.shape)

    @functools.cached_property
    def repeats(self) -> bool:
        """Do two entries have the same coordinates? Only formats that keep duplicates can say yes."""
        if self.distinct or not self.format.keeps_duplicates:
            return False
        _, axes = self.entry_axes()
        return bool(same_place(self.shape, axes)[1].any())

    @property
    def typed_format(self) -> Format:
        """The format with the integer types that its arrays have."""
        return with_types(self.format, {name: t.dtype for name, t in self.buffers.items()})

    def batched(self, sizes: tuple[int, ...], letters: str) -> "Structure":
        """The same arrays below a batch: new first axes that values alone have."""
        if self.has_room:
            return without_room(self).batched(sizes, letters)
        self.format.require_code("batch letters")
        buffers = renumbered(self.buffers, len(sizes))
        format, shape = self.format.batched(letters), (*sizes, *self.shape)
        return dataclasses.replace(self, format=format, shape=shape, buffers=buffers)

    def check(self, prefix: str = "") -> None:
        """Raise `DataError`, with the array and the place, unless the arrays are well formed."""
        check_structure(self, prefix)

    def widened(self) -> "Structure":
        """The same structure with int64 arrays, but for those whose type the format gives."""
        free = {name for name in self.buffers if asked_width(self.format, name) is None}
        buffers = {name: t.long() if name in free else t for name, t in self.buffers.items()}
        return dataclasses.replace(self, buffers=buffers)

    def mapped(self, function) -> "Structure":
        """The same structure with `function` applied to each tensor."""
        buffers = {name: function(t) for name, t in self.buffers.items()}
        valid = None if self.valid is None else function(self.valid)
        device = valid.device if valid is not None else next((t.device for t in buffers.values()), self.device)
        return dataclasses.replace(self, buffers=buffers, valid=valid, device=device)


def build_structure(
    format: Format, shape, axes, distinct: bool = False, whole: bool = False, ordered: bool = False
) -> tuple[Structure, torch.Tensor, torch.Tensor | None]:
    """The structure of entries at `axes` (int64 [n] per axis).

    No two are at one place unless the format keeps them; `distinct` says that none are, `ordered` that they come in the
    order of the levels. Returns it with int64 [n], the place of each sorted entry in the flat values, and the order of
    the sorting (None when nothing moved). With `whole` each entry is the first of a stored block that is full, and its
    place is the block's slot. Raises `DataError` when a width is too small.
    """
    format.require_code("pack")
    entries = sort_entries(format, shape, axes, ordered=ordered)
    placed = place(format, shape, entries, distinct and (whole or not format.tile))
    placed.buffers.update(binding_buffers(format, axes, shape))
    buffers = {name: fitted(format, name, t, placed.largest, shape) for name, t in placed.buffers.items()}
    structure = Structure(
        format,
        tuple(shape),
        buffers,
        placed.slots,
        entries.device,
        entries=_count(format, shape, axes, whole),
        distinct=distinct,
    )
    at = placed.pos
    if whole:
        return structure, at, entries.order
    if format.tile:
        inside = _inside(format, shape, axes)
        inside = inside if entries.order is None else inside.index_select(0, entries.order)
        at = torch.add(inside, at, alpha=math.prod(format.tile))
    valid = None if format.levels[-1].shows_entries else bitmap(structure, at, placed.count_named)
    return dataclasses.replace(structure, valid=valid), at, entries.order


def _inside(format: Format, shape, axes) -> torch.Tensor:
    """The place of each entry in its stored block, int64 [n]."""
    found = None
    for level in format.levels[len(format.prefix) :]:
        crd = level.coordinate_of(axes, shape)
        found = crd if found is None else torch.add(crd, found, alpha=level.size(shape))
    return found


def binding_buffers(format: Format, axes, shape) -> dict[str, torch.Tensor]:
    """What the bindings of a format store of entries at `axes`."""
    found, names, sizes = {}, with_bindings(format.bindings, axes, shape), format.name_sizes(shape)
    for binding, name in zip(format.bindings, format.binding_arrays):
        if name is not None:
            found[name] = binding.order(names, sizes)
    return found


def _count(format: Format, shape, axes, whole: bool) -> int | None:
    """How many entries there are; None where blocks at the edges hold fewer than others."""
    if not whole:
        return axes[0].numel()
    is_even = all(size % block == 0 for size, block in zip(shape, format.tile))
    return axes[0].numel() * math.prod(format.tile) if is_even else None

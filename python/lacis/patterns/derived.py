# SPDX-License-Identifier: Apache-2.0
"""Derived arrays: indices that kernels walk beyond a format's own, made on the device from the pattern."""

from __future__ import annotations

import math

import torch

from ..errors import FormatError
from ..formats import Format
from .announce import announce
from .place import fused_keys, place, sort_entries
from .structure import Structure
from .widths import dtype_of


def companion_arrays(structure: Structure, format: Format | str, least: int = 0) -> dict[str, torch.Tensor]:
    """The arrays of a companion `format` of a structure, by name: `pos1`, `crd1`, `link2`.

    Entries are the stored blocks that are not padding, sorted by the companion's coordinates and then by slot.
    `format` ends, above its stored blocks, with a `link` level, which holds the slot of each position, or in few bits
    its place in its row; without one it has the order of the structure's own format, which stores entries alone. An
    array that would be one of the structure's is that. The host waits for the device only where levels are padded or an
    axis of `structure` has several digits: then it must know how many blocks are no padding; and with `least`, of whose
    first axis coordinates with at least so many entries are there alone.

    >>> from lacis.patterns import Pattern
    >>> mask = torch.tensor([[True, True], [False, True], [True, True]])
    >>> pattern = Pattern.from_mask(mask, "(i, j) -> (i : dense, j : compressed)")
    >>> companion_arrays(pattern.part(), "(i, j) -> (i : compressed, j : compressed, link)", least=2)["crd0"].tolist()
    [0, 2]
    """
    if isinstance(format, str):
        format = Format.parse(format)
    listed = _lists_every_block(structure, format)
    if not _is_linked(format) and not (listed and _same_order(structure.format, format)):
        raise FormatError(
            f"a companion in another order than '{structure.format}' needs a 'link' level, '{format}' has none"
        )
    if format.tile != structure.format.tile:
        raise FormatError(
            f"a companion has the stored blocks of its format, {structure.format.tile}, not {format.tile}"
        )
    format.require_code("derive")
    if listed and not least:
        return _listed(structure, format)
    if _holds_places(format):
        raise FormatError(f"places in rows are of all entries in the order of rows, not of '{structure.format}'")
    axes, valid = structure.slot_axes()
    if structure.format.bindings and structure.valid is not None:
        valid = valid & structure.valid  # it lists entries alone
    link = valid.nonzero().reshape(-1)
    axes = [axis[link] for axis in axes]
    if least:
        row = axes[format.levels[0].digits[0].axis]
        kept = (torch.bincount(row) >= least)[row]
        link, axes = link[kept], [axis[kept] for axis in axes]
    placed = place(format, structure.shape, sort_entries(format, structure.shape, axes, link))
    return _typed(structure, format, placed.buffers, placed.largest)


def companion_waits(structure: Structure, text: str) -> bool:
    """Does the host wait for the device while `companion_arrays` are made?"""
    return not _lists_every_block(structure, Format.parse(text))


def _is_linked(format: Format) -> bool:
    return format.levels[len(format.prefix) - 1].extent.stands_alone


def _holds_places(format: Format) -> bool:
    return _is_linked(format) and format.levels[len(format.prefix) - 1].extent.is_place


def _places(structure: Structure, axes, sound: torch.Tensor) -> torch.Tensor:
    """int64 [slots]: the place of each slot in its row, 0 behind the last position."""
    first = structure.buffers["pos1"].long()[structure.format.levels[0].coordinate_of(axes, structure.shape)]
    return torch.where(sound, torch.arange(structure.slots, device=structure.device) - first, 0)


def _walked(format: Format):
    """The levels above the link."""
    return format.prefix[:-1] if _is_linked(format) else format.prefix


def _same_order(own: Format, format: Format) -> bool:
    """Do the levels of both name the same digits in the same order, which the stored ones of `own` keep?"""
    digits = [[digit for level in levels for digit in level.digits] for levels in (own.prefix, _walked(format))]
    return _keeps_order(own) and digits[0] == digits[1]


def _keeps_order(own: Format) -> bool:
    """Are slots in the order of their coordinates, level by level?"""
    return all(level.extent.covers or getattr(level.coordinate, "ordered", False) for level in own.prefix)


def _lists_every_block(structure: Structure, format: Format) -> bool:
    """Is there no padding, and is the companion dense over some axes, with a list under each that may repeat?"""
    own = structure.format.prefix
    digits = [digit for level in own for digit in level.digits]
    whole = len({digit.axis for digit in digits}) == len(digits) and not any(digit.mod for digit in digits)
    below = [level for level in _walked(format) if not level.extent.covers]
    lists = bool(below) and not below[0].coordinate.unique and below[0].buffers() == ("pos", "crd")
    joined = all(level.extent.follows and not level.padded for level in below[1:])
    if structure.format.bindings:
        return False
    padded = any((level.padded and not level.extent.covers) or level.extent.gaps for level in own)
    return whole and lists and joined and not padded


def _listed(structure: Structure, format: Format) -> dict[str, torch.Tensor]:
    """The arrays of a companion that lists every stored block."""
    shape, levels = structure.shape, _walked(format)
    axes, sound = structure.slot_axes()
    crds, sizes = [level.coordinate_of(axes, shape) for level in levels], [level.size(shape) for level in levels]
    own = _same_order(structure.format, format)
    order = None if own else _sorted(crds[: _moved(structure.format, format)], sizes)
    lead = sum(level.extent.covers for level in levels)
    parents, parent = math.prod(sizes[:lead]), torch.zeros_like(crds[0]) if not lead else crds[0]
    for crd, size in zip(crds[1:lead], sizes[1:]):
        parent = parent * size + crd
    if structure.has_room:  # it comes last, under no parent
        room_last = lambda there: torch.sort(~there, stable=True).indices
        order = room_last(sound) if order is None else order[room_last(sound[order])]
        parent = torch.where(sound, parent, parents)
        crds = [torch.where(sound, crd, -1) for crd in crds]
    announce(parents + 1, levels[lead].kind, str(format))
    bounds = torch.arange(parents + 1, device=structure.device)
    in_order = lambda array: array if order is None else array.index_select(0, order)
    buffers = {f"pos{lead}": torch.searchsorted(in_order(parent), bounds)}
    buffers |= {f"crd{number}": in_order(crds[number]) for number in range(lead, len(levels))}
    if _is_linked(format):
        every = torch.arange(structure.slots, device=structure.device) if order is None else order
        buffers[f"link{len(levels)}"] = _places(structure, axes, sound)[every] if _holds_places(format) else every
    largest = max([*shape, *sizes, parents, structure.slots * math.prod(format.tile)])
    made = _typed(structure, format, buffers, largest)
    return {**made, **(_shared(structure, levels, made) if own else {})}


def _moved(own: Format, format: Format) -> int:
    """By how many of the companion's first levels its blocks are sorted: those below have the slots' own order."""
    stored = [digit for level in own.prefix for digit in level.digits]
    walked = [level.digits for level in _walked(format)]
    if not _keeps_order(own):
        return len(walked)
    for number in range(len(walked)):
        first = [digit for digits in walked[:number] for digit in digits]
        rest = [digit for digits in walked[number:] for digit in digits]
        if rest == [digit for digit in stored if digit not in first]:
            return number
    return len(walked)


def _sorted(crds, sizes) -> torch.Tensor | None:
    """The order of slots by these coordinates, and then by slot; None where that is theirs."""
    order = None
    for key in reversed(fused_keys(crds, sizes) if crds else []):
        step = torch.sort(key if order is None else key[order], stable=True).indices
        order = step if order is None else order[step]
    return order


def _typed(structure: Structure, format: Format, buffers, largest: int) -> dict[str, torch.Tensor]:
    """The arrays in int64 where the structure has that, or numbers need it; else as narrow as the format says."""
    if largest >= 2**31 or any(t.dtype == torch.int64 for t in structure.buffers.values()):
        return {name: t.to(torch.int64) for name, t in buffers.items()}
    return {name: t.to(dtype_of(format, name)) for name, t in buffers.items()}


def _shared(structure: Structure, levels, made) -> dict[str, torch.Tensor]:
    """The coordinates that the structure itself has at the same positions: of the same digits, in the same type."""
    stored = [(n, level) for n, level in enumerate(structure.format.prefix) if not level.extent.covers]
    own = {tuple(level.digits): number for number, level in stored}
    found = {}
    for number, level in enumerate(levels):
        array, same = structure.buffers.get(f"crd{own.get(tuple(level.digits))}"), made.get(f"crd{number}")
        if array is not None and same is not None and (array.dtype, array.shape) == (same.dtype, same.shape):
            found[f"crd{number}"] = array
    return found

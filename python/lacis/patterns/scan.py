# SPDX-License-Identifier: Apache-2.0
"""The pattern of a mask by prefix sums: nothing is sorted, and nobody waits to know how many entries there are.

So patterns are made where they change in each call, and within CUDA graphs. See `room` for what is stored behind the
last position, and "Prefix sums and their applications" (Blelloch, 1990) for compaction by scans.
"""

from __future__ import annotations

import math

import torch

from ..formats import Format, Sum
from .pattern import Pattern
from .room import may_have_room
from .structure import Structure
from .widths import asked_width


def may_be_scanned(format: Format | Sum) -> bool:
    """Does each place of the format's levels have a position of its own, after those of the places before?

    So it is in CSR, CSC, COO and BSR, where no array has an integer type that must be looked at.

    >>> from lacis.formats import Coo, Csr, Dcsr
    >>> may_be_scanned(Coo().for_rank(2)), may_be_scanned(Csr().for_rank(2)), may_be_scanned(Dcsr().for_rank(2))
    (True, True, False)
    """
    if not may_have_room(format) or format.batch:
        return False
    levels = _stored(format)
    asked = any(asked_width(format, name) for name in format.buffers)
    return not asked and (len(levels) == 1 or not levels[0].coordinate.unique)


def scan_pattern(mask: torch.Tensor, format: Format, slots: int | None = None) -> tuple[Pattern, torch.Tensor]:
    """The pattern of the True elements in a format that may be scanned, and the place of each element in flat values.

    `slots` is how many blocks are stored at the most, the first ones in the order of the format, by default as many as
    the mask has; those that nothing needs are room. The place is int64 of the mask's shape, the number of flat values
    where nothing is stored.

    >>> from lacis.formats import Csr
    >>> pattern, at = scan_pattern(torch.tensor([[False, True], [True, True]]), Csr().for_rank(2))
    >>> pattern.storage["pos1"].tolist(), pattern.storage["crd1"].tolist(), at.tolist()
    ([0, 1, 3], [1, 0, 1, -1], [[4, 0], [1, 2]])
    """
    shape = tuple(mask.shape)
    axes = _axes(mask)
    sizes = [level.size(shape) for level in format.prefix]
    count = math.prod(sizes)
    slots = count if slots is None else slots
    place = _number(format.prefix, axes, shape).expand(shape)
    there = torch.zeros(count + 1, dtype=torch.bool, device=mask.device)
    there = there.scatter_(0, torch.where(mask, place, count).reshape(-1), True)[:count]
    slot = torch.cumsum(there, 0) - 1
    there = there & (slot < slots)
    buffers = _buffers(format, sizes, there, torch.where(there, slot, slots), slots)
    kept, at = (mask & there[place], slot[place]) if count else (mask, place)
    inside = _number(format.levels[len(format.prefix) :], axes, shape)
    if inside is not None:
        at = at * math.prod(format.tile) + inside
    end = slots * math.prod(format.tile)
    at = torch.where(kept, at, end)
    valid = None
    if inside is not None:
        valid = torch.zeros(end + 1, dtype=torch.bool, device=mask.device).scatter_(0, at.reshape(-1), True)
        valid = valid[:end].reshape(slots, *format.tile)
    structure = Structure(format, shape, buffers, slots, mask.device, valid, distinct=True, has_room=True)
    pattern = Pattern(format, {"": structure})
    pattern.uneven = (False,) * len(shape)  # to know it the host would wait
    return pattern, at


def scanned_values(tensor: torch.Tensor, pattern: Pattern, at: torch.Tensor) -> torch.Tensor:
    """The values of a tensor at the entries of a pattern that was scanned, 0 elsewhere; gradients flow back.

    >>> from lacis.formats import Csr
    >>> mask = torch.tensor([[False, True], [True, True]])
    >>> scanned_values(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), *scan_pattern(mask, Csr().for_rank(2))).tolist()
    [2.0, 3.0, 4.0, 0.0]
    """
    shape = pattern.part().values_shape
    flat = tensor.new_zeros(math.prod(shape) + 1).index_put((at.reshape(-1),), tensor.reshape(-1))
    return flat[:-1].reshape(shape)


def _stored(format: Format) -> list:
    return [level for level in format.prefix if not level.extent.covers]


def _axes(mask: torch.Tensor) -> list[torch.Tensor]:
    """The coordinates of each element along each axis, that the shape is made of by broadcasting."""
    axes = [torch.arange(size, device=mask.device) for size in mask.shape]
    return [axis.reshape([-1 if n == own else 1 for n in range(mask.ndim)]) for own, axis in enumerate(axes)]


def _number(levels, axes, shape) -> torch.Tensor | None:
    """The row-major number of each element's coordinates in these levels; None where there are none."""
    number = None
    for level in levels:
        crd = level.coordinate_of(axes, shape)
        number = crd if number is None else number * level.size(shape) + crd
    return number


def _buffers(format: Format, sizes, there, slot, slots: int) -> dict[str, torch.Tensor]:
    """`pos` of the level that counts, and `crd` of this and all below, -1 behind the last position."""
    lead = next(number for number, level in enumerate(format.prefix) if not level.extent.covers)
    parents, below = math.prod(sizes[:lead]), math.prod(sizes[lead:])
    wide = max([*sizes, slots * math.prod(format.tile), len(there)]) >= 2**31
    dtype = torch.int64 if wide else torch.int32
    counts = there.reshape(parents, below).sum(1)
    found = {f"pos{lead}": torch.cat([counts.new_zeros(1), torch.cumsum(counts, 0)]).to(dtype)}
    number = torch.arange(len(there), dtype=dtype, device=there.device)
    for n in reversed(range(lead, len(sizes))):
        crd = torch.full((slots + 1,), -1, dtype=dtype, device=there.device)
        found[f"crd{n}"] = crd.scatter_(0, slot, number % max(sizes[n], 1))[:slots]
        number = number // max(sizes[n], 1)
    return found

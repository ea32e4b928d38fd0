# SPDX-License-Identifier: Apache-2.0
"""Refuses arrays that are not well formed, level by level from the top, so that no bad number is ever followed."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..formats.level import Checker
from .place import same_place
from .room import may_have_room


def check_structure(structure, prefix: str) -> None:
    """Raise `DataError` with the array (`prefix` before its name) and the place; return when all is well."""
    format, shape = structure.format, structure.shape
    parents, tie, sizes, above, room = 1, None, format.name_sizes(shape), None, may_have_room(format)
    for number, level in enumerate(format.prefix):
        slots = structure.slots if number + 1 == len(format.prefix) else None
        check, buffers = Checker(prefix, number, parents, slots, room), structure.of_level(number)
        size = level.size(sizes)
        slots = level.extent.check(check, buffers, parents, size)
        if not level.coordinate.implicit:  # else there is nothing to look at, and as many positions as a shape says
            positions = level.extent.read(buffers, parents, size, structure.device)
            if level.extent.follows and positions.valid is None:  # as the one above
                positions.valid = above
            above = positions.valid
            level.coordinate.check(check, buffers, level, positions, size)
            tie = _check_chain(structure, check, number, positions, tie)
        else:
            if above is not None:  # a level that follows asks which of these positions lie under a parent
                above = above[level.extent.read(buffers, parents, size, structure.device).parent]
            tie = None
        parents = slots
    for binding, name in zip(format.bindings, format.binding_arrays):
        binding.check_sizes(sizes)
        if name is not None:
            number = int(name.removeprefix(binding.array))
            binding.check(Checker(prefix, number), structure.buffers[name], sizes)
    if parents != structure.slots:
        raise DataError(f"'{prefix}values' must have {parents} slots, not {structure.slots}")
    if structure.valid is None and structure.needs_valid and not bool(structure.pattern_coordinates()[1].all()):
        raise DataError(f"'{prefix}valid' is missing: where all coordinates have a slot it says which are entries")
    if structure.valid is not None and tuple(structure.valid.shape) != structure.block_shape:
        want, got = list(structure.block_shape), list(structure.valid.shape)
        raise DataError(f"'{prefix}valid' must have shape {want}, not {got}")


def check_parts(format, parts) -> None:
    """Raise `DataError` where parts do not go together; see `check_distinct` and `check_rows`."""
    check_distinct(parts)
    if len(parts) > 1:
        for axis in range(format.rank):
            for group in format.row_groups(axis):
                check_rows({name: parts[name] for name in group}, axis)


def check_rows(parts, axis: int) -> None:
    """Raise `DataError` where two parts of a sum have a coordinate along `axis`, which its rules leave to one of them.

    Kernels give such rows to the part alone: it would be a wrong sum. A coordinate that a part lists counts, be there
    entries or not.
    """
    names = list(parts)
    owner = torch.full((next(iter(parts.values())).shape[axis],), -1)
    for number, part in enumerate(parts.values()):
        found = part.entry_axes()[1][axis]
        first, listed = part.format.prefix[0], part.buffers.get("crd0")
        if listed is not None and [(d.axis, d.div, d.mod) for d in first.digits] == [(axis, 1, 0)]:
            found = torch.cat([found, listed[listed >= 0].to(torch.int64)])  # the others are padding or room
        mine = torch.zeros_like(owner, dtype=torch.bool).index_fill_(0, found.cpu(), True)
        both = mine & (owner >= 0)
        if bool(both.any()):
            at = int(both.to(torch.uint8).argmax())
            other, letter = names[int(owner[at])], part.format.axes[axis]
            raise DataError(
                f"'{names[number]}' and '{other}' both have {letter} = {at}, which the rules leave to one part; "
                "lacis.pack splits a tensor by the rules"
            )
        owner[mine] = number


def check_distinct(parts) -> None:
    """Raise `DataError` where two entries of one format or of two parts of a sum are at one place.

    `parts` maps names to structures that `check_structure` found well formed. Where all coordinates ascend it saw
    such entries itself. A format that keeps duplicates may have them.
    """
    several = len(parts) > 1
    seen = {name: part for name, part in parts.items() if several or _may_repeat(part.format)}
    if not seen:
        return
    found = {name: part.coordinates() for name, part in seen.items()}
    places = {name: valid.nonzero().reshape(-1) for name, (_, valid) in found.items()}
    first = next(iter(seen.values()))
    axes = [torch.cat([found[name][0][a][at] for name, at in places.items()]) for a in range(len(first.shape))]
    owner = torch.cat([torch.full_like(at, n) for n, at in enumerate(places.values())])
    at = torch.cat(list(places.values()))
    order, same = same_place(first.shape, axes)
    order, same = torch.arange(len(at), device=at.device) if order is None else order, same[1:]
    before, after = order[:-1], order[1:]
    kept = torch.tensor([part.format.keeps_duplicates for part in seen.values()], device=at.device)
    same &= (owner[before] != owner[after]) | ~kept[owner[before]]
    if not bool(same.any()):
        return
    pair = [int(side[int(same.to(torch.uint8).argmax())]) for side in (before, after)]
    names = list(seen)
    where = [f"'{f'{names[int(owner[n])]}.' if several else ''}values' at [{int(at[n])}]" for n in pair]
    place = [int(axis[pair[0]]) for axis in axes]
    raise DataError(f"{where[0]} and {where[1]}: both are the entry {place}, which only COO may have twice")


def _may_repeat(format) -> bool:
    levels = [level.coordinate for level in format.prefix]
    once = all(each.unique and each.ordered for each in levels) and not format.bindings
    return not format.keeps_duplicates and not once


def _check_chain(structure, check: Checker, number: int, positions, tie):
    """Order through a level that is not unique and those that follow it, whose coordinates count as one tuple.

    `tie` is bool [slots]: a position has the same tuple so far as the one before; None outside of a chain.
    """
    levels = structure.format.prefix
    level = levels[number]
    begins, goes_on = not level.coordinate.unique, tie is not None and level.extent.follows
    if not (begins or goes_on) or "crd" not in level.buffers():
        return None
    crd = structure.of_level(number)["crd"].reshape(-1)
    if not goes_on:
        tie = torch.zeros(crd.shape, dtype=torch.bool, device=crd.device)
        tie[1:] = positions.parent[1:] == positions.parent[:-1]
    if level.coordinate.ordered:
        _fail(check, crd, tie, crd[1:] < crd[:-1], "coordinates must ascend, but {value} follows a larger one")
    tie = tie.clone()
    tie[1:] &= crd[1:] == crd[:-1]
    below = levels[number + 1] if number + 1 < len(levels) else None
    if below is not None and below.extent.follows:
        return tie
    if not structure.format.keeps_duplicates and (below is None or below.extent.capacity is None):
        _fail(check, crd, tie & (crd >= 0), None, "coordinate {value} is there twice, which only COO allows")
    return None


def _fail(check: Checker, crd, tie, bad, message: str) -> None:
    if bad is not None:
        tie = tie.clone()
        tie[1:] &= bad & (crd[1:] >= 0)
    check.none("crd", tie, message, crd)

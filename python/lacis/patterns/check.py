# SPDX-License-Identifier: Apache-2.0
"""Refuses arrays that are not well formed, level by level from the top, so that no bad number is ever followed."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..formats.level import Checker


def check_structure(structure, prefix: str) -> None:
    """Raise `DataError` with the array (`prefix` before its name) and the place; return when all is well."""
    format, shape = structure.format, structure.shape
    parents, tie = 1, None
    for number, level in enumerate(format.prefix):
        check, buffers = Checker(prefix, number), structure.of_level(number)
        size = level.size(shape)
        slots = level.extent.check(check, buffers, parents, size)
        positions = level.extent.read(buffers, parents, size, structure.device)
        level.coordinate.check(check, buffers, level, positions, size)
        tie = _check_chain(structure, check, number, positions, tie)
        parents = slots
    if parents != structure.slots:
        raise DataError(f"'{prefix}values' must have {parents} slots, not {structure.slots}")
    if structure.valid is not None and tuple(structure.valid.shape) != structure.values_shape:
        want, got = list(structure.values_shape), list(structure.valid.shape)
        raise DataError(f"'{prefix}valid' must have shape {want}, not {got}")


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

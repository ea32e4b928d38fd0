# SPDX-License-Identifier: Apache-2.0
"""Where the stored blocks of a structure lie, read level by level from the top."""

from __future__ import annotations

import contextlib
import threading

import torch

from ..formats import Format, Level
from ..formats.bindings import solve
from ..formats.digit import quotient, remainder


class _Kept(threading.local):
    axes: dict | None = None  # by structure, while `read_once` runs


_kept = _Kept()


@contextlib.contextmanager
def read_once():
    """While the body runs, and writes into no array, each structure is read once for all that is derived from it."""
    before, _kept.axes = _kept.axes, {}
    try:
        yield
    finally:
        _kept.axes = before


def axes_of_slots(structure) -> tuple[list[torch.Tensor], torch.Tensor]:
    """What `Structure.slot_axes` answers."""
    if _kept.axes is None:
        return _read(structure)
    if structure not in _kept.axes:
        _kept.axes[structure] = _read(structure)
    return _kept.axes[structure]


def _read(structure) -> tuple[list[torch.Tensor], torch.Tensor]:
    format, shape, device = structure.format, structure.shape, structure.device
    sizes = format.name_sizes(shape)
    axes: list[torch.Tensor | None] = [None for _ in sizes]  # None where nothing was added yet
    valid, parents = None, 1
    for number, level in enumerate(format.prefix):
        buffers, size = structure.of_level(number), level.size(sizes)
        positions = level.extent.read(buffers, parents, size, device)
        crd, sound = level.coordinate.read(buffers, positions, size)
        *axes, valid = (None if each is None else each.index_select(0, positions.parent) for each in (*axes, valid))
        add_digits(level, sizes, axes, crd)
        for found in (sound, positions.valid):
            valid = found if valid is None else valid if found is None else valid & found
        parents = positions.slots
    axes = [torch.zeros(parents, dtype=torch.int64, device=device) if axis is None else axis for axis in axes]
    arrays = [None if name is None else structure.buffers[name] for name in format.binding_arrays]
    axes = solve(format.bindings, len(shape), format.levels, axes, sizes, arrays)
    valid = torch.ones(parents, dtype=torch.bool, device=device) if valid is None else valid
    for number, (axis, length) in enumerate(zip(axes, shape)):
        if not _is_inside(format, number, length):
            valid = valid & (axis < length)
        if format.bindings:
            valid = valid & (axis >= 0)
    return axes, valid


def _is_inside(format: Format, axis: int, length: int) -> bool:
    """No digits name a coordinate behind the last of the axis: the largest divides its length."""
    largest = [digit.div for level in format.prefix for digit in level.digits if digit.axis == axis]
    return not format.bindings and length % max(largest, default=1) == 0


def add_digits(level: Level, shape, axes, crd: torch.Tensor) -> None:
    """Add what a level's coordinate says to the axis coordinates, in place of the list, where None is 0."""
    for digit in reversed(level.digits):
        extent, is_last = max(digit.extent(shape), 1), digit is level.digits[0]
        value, before = crd if is_last else remainder(crd, extent), axes[digit.axis]
        if before is None:
            axes[digit.axis] = value if digit.div == 1 else value * digit.div
        else:
            axes[digit.axis] = torch.add(before, value, alpha=digit.div)
        crd = crd if is_last else quotient(crd, extent)

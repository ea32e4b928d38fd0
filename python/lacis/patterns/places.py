# SPDX-License-Identifier: Apache-2.0
"""Patterns by the numbers of their places, entries or whole blocks, and where the format stores each of them."""

from __future__ import annotations

import dataclasses
import math

import torch

from ..errors import DataError, FormatError
from ..formats import Format, Sum
from .build import build_pattern, for_tensor
from .pattern import Pattern
from .structure import Structure


@dataclasses.dataclass
class Places:
    """The places of a pattern in row-major order, each with its row in the values of all parts, one after another.

    A place is a stored block, whose values are a row, where `block` says its sizes, else an entry.
    """

    shape: tuple[int, ...]
    block: tuple[int, ...] | None
    positions: torch.Tensor  # int64 [count], ascending
    rows: torch.Tensor  # int64 [count]
    sizes: dict[str, tuple[int, ...]]  # of the values of each part

    @property
    def width(self) -> int:
        """How many values a row has."""
        return math.prod(self.block or ())

    def gather(self, values: dict[str, torch.Tensor]) -> torch.Tensor:
        """[count, width]: tensors of the parts' values, place by place."""
        flat = [tensor.detach().reshape(-1, self.width) for tensor in values.values()]
        return rows_at(flat[0] if len(flat) == 1 else torch.cat(flat), self.rows)

    def scatter(self, rows: torch.Tensor) -> dict[str, torch.Tensor]:
        """The tensors of the parts' values, from [count, width]; 0 in padding."""
        counts = [math.prod(size) // self.width for size in self.sizes.values()]
        flat = rows.new_zeros(sum(counts), self.width).index_copy_(0, self.rows, rows)
        return {name: part.reshape(size) for (name, size), part in zip(self.sizes.items(), flat.split(counts))}


def rows_at(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """`rows[index]` of rows [n, width]: a CPU takes numbers one by one in a third of the time of rows of one."""
    if rows.shape[1] == 1:
        return rows.reshape(-1).index_select(0, index)[:, None]
    return rows.index_select(0, index)


def places_of(pattern: Pattern, block: tuple[int, ...] | None = None) -> Places:
    """The places of a pattern: its stored blocks where they are whole and have the sizes `block`, else its entries."""
    shape = tuple(pattern.shape)
    block = block if is_whole(pattern, block) else None
    numbers, rows, before = [], [], 0
    for part in pattern.parts.values():
        axes, sound = part.coordinates() if block is None else part.slot_axes()
        numbers.append(flat_numbers(axes, shape, block))
        row = torch.arange(before, before + len(sound), device=sound.device)
        if not has_no_padding(part, block):
            numbers[-1], row = numbers[-1][sound], row[sound]
        rows.append(row)
        before += len(sound)
    positions, rows = torch.cat(numbers), torch.cat(rows)
    if positions.device.type != "cpu" or bool((positions[1:] < positions[:-1]).any()):
        positions, order = torch.sort(positions, stable=True)
        rows = rows.index_select(0, order)
    return Places(shape, block, positions, rows, {name: part.values_shape for name, part in pattern.parts.items()})


def has_no_padding(part: Structure, block=None) -> bool:
    """Is every stored place sound, as the format and the shape say?"""
    is_even = block is not None or all(size % b == 0 for size, b in zip(part.shape, part.format.tile))
    last = [level.extent for level in part.format.prefix if not level.extent.follows][-1:]  # it says how many there are
    return (
        part.valid is None
        and not part.has_room
        and is_even
        and bool(last)
        and not last[0].pads
        and last[0].capacity is None
    )


def checked_places(format, shape, positions, distinct: bool, block) -> tuple[Format | Sum, torch.Tensor]:
    """What `Pattern.of_places` was given: the format for this rank, and the numbers ascending. Raises `DataError`."""
    format = for_tensor(format, shape)
    if not isinstance(positions, torch.Tensor) or positions.dtype != torch.int64 or positions.ndim != 1:
        raise DataError("of_places: positions are an int64 tensor with one axis")
    if block is not None and len(block) != len(shape):
        raise DataError(f"of_places: blocks of {len(block)} axes do not fit a tensor of {len(shape)}")
    grid = shape if block is None else [-(-size // b) for size, b in zip(shape, block)]
    positions = positions.sort().values if distinct else positions.unique()
    if positions.device.type == "cpu" and len(positions):
        if int(positions[0]) < 0 or int(positions[-1]) >= math.prod(grid):
            raise DataError(f"of_places: positions are from 0 to {math.prod(grid) - 1}")
        if bool((positions[1:] == positions[:-1]).any()):
            raise DataError("of_places: a position is there twice; give distinct=False to keep one of them")
    return format, positions


def place_pattern(
    format: Format | Sum, shape, positions: torch.Tensor, block: tuple[int, ...] | None = None
) -> tuple[Pattern, Places]:
    """The pattern of the places with these numbers, int64 ascending, and where it stores them.

    What is uneven in it is found when somebody asks.
    """
    parts = format.parts.values() if isinstance(format, Sum) else [format]
    whole = block is not None
    if whole and not all(is_tile(part, block) for part in parts):
        raise FormatError(f"'{format}' does not store whole blocks of {list(block)}; give the places of entries")
    pattern, filled = build_pattern(format, tuple(shape), axes_of(positions, shape, block), True, whole, counts=False)
    rows, before = torch.empty_like(positions), 0
    for name, part in pattern.parts.items():
        at, source = filled[name].at + before, filled[name].source
        rows = at if source is None else rows.index_copy_(0, source, at)
        before += math.prod(part.values_shape) // math.prod(block or ())
    sizes = {name: part.values_shape for name, part in pattern.parts.items()}
    return pattern, Places(tuple(shape), block, positions, rows, sizes)


def is_whole(pattern: Pattern, block: tuple[int, ...] | None) -> bool:
    """Does every part store whole blocks of these sizes, each of them full?"""
    parts = pattern.parts.values()
    return block is not None and all(part.valid is None and is_tile(part.format, block) for part in parts)


def is_tile(format: Format, block: tuple[int, ...]) -> bool:
    """Are the format's stored blocks those of these sizes, row-major inside?"""
    if tuple(format.tile) != tuple(block):
        return False
    levels = format.levels[len(format.prefix) :]
    return [digit.axis for level in levels for digit in level.digits] == list(range(len(block)))


def flat_numbers(axes, shape, block) -> torch.Tensor:
    """int64 [n]: the row-major numbers of coordinates, or of the blocks that begin at them."""
    number = None
    for n, (axis, size) in enumerate(zip(axes, shape)):
        if block is not None:
            axis, size = axis // block[n], -(-size // block[n])
        number = axis if number is None else number * size + axis
    return number


def axes_of(numbers: torch.Tensor, shape, block) -> list[torch.Tensor]:
    """The first coordinates of places by number: what `flat_numbers` took."""
    axes = []
    for n in reversed(range(len(shape))):
        size = shape[n] if block is None else -(-shape[n] // block[n])
        above = numbers // size
        inside = numbers - above * size
        axes.append(inside if block is None else inside * block[n])
        numbers = above
    return axes[::-1]

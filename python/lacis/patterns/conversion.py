# SPDX-License-Identifier: Apache-2.0
"""From one format to another: the pattern in the other one, and a gather that moves any values there.

The phases are those of packing, after "Automatic Generation of Efficient Sparse Tensor Format Conversion Routines"
(Chou, Kjolstad, Amarasinghe, PLDI 2020): coordinates (remap), their order (analysis), arrays level by level (assembly).
"""

from __future__ import annotations

import dataclasses
import math

import torch

from ..formats import Format, Sum
from .build import build_pattern
from .pattern import Pattern
from .place import same_place


@dataclasses.dataclass(frozen=True)
class Move:
    """What fills the values of one part: `filled[at] = flat[source]`, then `filled[into] += flat[more]`.

    int64 each, `again` is (into, more). `at` None is every place in order, `source` None all values in order, `again`
    None adds nothing.
    """

    shape: tuple[int, ...]
    at: torch.Tensor | None
    source: torch.Tensor | None
    again: tuple[torch.Tensor, torch.Tensor] | None = None

    def __call__(self, flat: torch.Tensor) -> torch.Tensor:
        moved = flat if self.source is None else flat.index_select(0, self.source)
        if self.at is None and self.source is None:
            moved = flat.clone()  # what is written to one of them is not to be seen in the other
        if self.at is not None:
            moved = moved.new_zeros(math.prod(self.shape)).index_put((self.at,), moved)
        if self.again is not None:
            into, more = self.again
            moved = moved.index_put((into,), flat.index_select(0, more), accumulate=True)
        return moved.reshape(self.shape)

    def after(self, slots: torch.Tensor | None) -> "Move":
        """The same from the values that hold the entries at `slots`, None of which is all of them in order.

        It is one gather where all places are filled.
        """
        source = slots if self.source is None else self.source if slots is None else slots[self.source]
        at, again = self.at, self.again
        if at is not None and at.numel() == math.prod(self.shape):
            source = torch.arange(at.numel(), device=at.device) if source is None else source
            at, source = None, torch.empty_like(source).index_put((at,), source)
        if again is not None and slots is not None:
            again = (again[0], slots[again[1]])
        return Move(self.shape, at, source, again)


@dataclasses.dataclass(frozen=True)
class Conversion:
    """A pattern, and how each of its parts takes values from those of the entries that it was made of."""

    pattern: Pattern
    moves: dict[str, Move]

    def values(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """The values of each part, 0 in padding; differentiable."""
        return {name: move(flat) for name, move in self.moves.items()}


def placed_entries(
    format: Format | Sum, shape, axes, distinct: bool, *, counts: bool = True, ordered: bool = False
) -> Conversion:
    """Entries at `axes` (int64 [n] per axis) in a format; those at one place are summed, but by formats that keep them.

    `distinct` says that no two are at one place; of `counts` and `ordered` see `build_pattern`. A sum begins with the
    entry that comes first, so one that is alone keeps its value, -0.0 and NaN too.
    """
    parts = format.parts.values() if isinstance(format, Sum) else [format]
    order, again = None, None
    if not distinct and axes[0].numel() > 1 and not all(part.keeps_duplicates for part in parts):
        order, again = same_place(shape, axes)
        if order is not None:
            axes = [axis[order] for axis in axes]
        distinct, again = True, again if bool(again.any()) else None
    if again is None:
        pattern, filled = build_pattern(format, shape, axes, distinct, counts=counts, ordered=ordered)
        moves = {name: _move(pattern.part(name), each) for name, each in filled.items()}
        return Conversion(pattern, moves if order is None else {n: _through(order, m) for n, m in moves.items()})
    order = torch.arange(len(again), device=again.device) if order is None else order
    pattern, filled = build_pattern(format, shape, [axis[~again] for axis in axes], distinct, counts=counts)
    kept, more, into = order[~again], order[again], (torch.cumsum(~again, 0) - 1)[again]
    return Conversion(pattern, {n: _summing(pattern.part(n), each, kept, more, into) for n, each in filled.items()})


def _move(part, filled) -> Move:
    """What fills a part whose entries are at places of their own: those of levels in order ascend."""
    ascends = all(level.coordinate.ordered for level in part.format.prefix) and not part.format.tile
    in_order = ascends and not part.format.batch and filled.at.numel() == math.prod(part.values_shape)
    return Move(part.values_shape, None if in_order else filled.at, filled.source)


def _through(order: torch.Tensor, move: Move) -> Move:
    return dataclasses.replace(move, source=order if move.source is None else order[move.source])


def _summing(part, filled, kept, more, into) -> Move:
    """The move of the entries `kept`, and of those `more` that are added to the kept ones numbered `into`."""
    source = kept if filled.source is None else kept[filled.source]
    where = torch.full_like(kept, -1)
    where[slice(None) if filled.source is None else filled.source] = filled.at
    mine = where[into] >= 0
    return Move(part.values_shape, filled.at, source, (where[into][mine], more[mine]))


def convert(pattern: Pattern, format: Format | Sum) -> Conversion:
    """What moves the values of a pattern, flat and part after part, into `format`, on its device.

    >>> p = Pattern.from_mask(torch.tensor([[True, True], [True, False]]), "(i, j) -> (i : dense, j : compressed)")
    >>> conversion = convert(p, Format.parse("(i, j) -> (j : dense, i : compressed)"))
    >>> conversion.pattern.storage["pos1"].tolist(), conversion.values(torch.tensor([1.0, 2.0, 3.0]))[""].tolist()
    ([0, 2, 3], [1.0, 3.0, 2.0])

    Raises `DataError` for a width that is too small.
    """
    axes, slots, first = [], [], 0
    for part in pattern.parts.values():
        index, where = part.entry_axes()
        axes.append(where)
        if index is None and len(pattern.parts) > 1:
            index = torch.arange(where[0].numel(), device=pattern.device)
        slots.append(index + first if first else index)
        first += math.prod(part.values_shape)
    joined, slots = [_joined(each) for each in zip(*axes)], _joined(slots)
    if slots is not None and slots.numel() == first and not any(part.format.batch for part in pattern.parts.values()):
        slots = None  # they ascend
    ordered = _comes_in_order(pattern, format)
    placed = placed_entries(format, tuple(pattern.shape), joined, pattern.distinct, counts=False, ordered=ordered)
    if "uneven" in pattern.__dict__ and _has_blocks(pattern) == _has_blocks(placed.pattern):
        placed.pattern.uneven = pattern.uneven  # of the same entries; else it is found when somebody asks
    return Conversion(placed.pattern, {name: move.after(slots) for name, move in placed.moves.items()})


def _comes_in_order(pattern: Pattern, format: Format | Sum) -> bool:
    """Are the entries of a pattern, as they are read, known to be in the order of another format's levels?

    Levels of one position each are left out: nobody looks at whether their coordinates ascend.
    """
    if isinstance(format, Sum) or isinstance(pattern.format, Sum):
        return False
    own = pattern.format
    plain = not any(each.bindings or each.batch or each.tile for each in (own, format))
    ascends = all(level.coordinate.ordered and not level.extent.follows for level in own.levels)
    return plain and ascends and _digits(own) == _digits(format)


def _digits(format: Format) -> list:
    return [digit for level in format.levels for digit in level.digits]


def _has_blocks(pattern: Pattern) -> bool:
    return any(part.format.tile for part in pattern.parts.values())


def _joined(tensors) -> torch.Tensor:
    return torch.cat(tensors) if len(tensors) > 1 else tensors[0]

# SPDX-License-Identifier: Apache-2.0
"""Patterns by rows and by columns: what one loop over the positions of a row, or of a column, walks."""

from __future__ import annotations

import math

import torch

from ..formats import Format, Sum
from ..patterns import Pattern
from ..patterns.structure import Structure
from .kept import COLUMNS, kept_of
from .lists import columns_of

_BY_ROWS: dict[tuple[str, int], bool] = {}  # of the text of a format and its rank


def by_rows(pattern: Pattern) -> Pattern | None:
    """The same entries, a list of keys for each query: the pattern itself where it is one, else made once and kept.

    None of sums of formats.

    >>> p = Pattern.from_mask(torch.eye(2, dtype=torch.bool), "(i, j) -> (i : compressed<unique=false>, j : singleton)")
    >>> by_rows(p).format.text
    '#lacis.format<(i, j) -> (i : dense, j : compressed)>'
    """
    if isinstance(pattern.format, Sum):
        return None
    key = pattern.format.text, len(pattern.shape)
    if key not in _BY_ROWS:  # each call of attention asks
        _BY_ROWS[key] = _is_by_rows(pattern.format, key[1])
    return pattern if _BY_ROWS[key] else kept_of(pattern, "rows", lambda: _walked(pattern, columns=False))


def by_columns(pattern: Pattern) -> Pattern:
    """The same entries with the last two axes exchanged, a list of queries for each key; made once and kept."""
    return kept_of(pattern, COLUMNS, lambda: columns_of(pattern) or _walked(pattern, columns=True))


def _is_by_rows(format: Format, rank: int) -> bool:
    """Dense levels down to the rows, positions of columns, and below at the most one dense level of each."""
    *above, last = format.prefix
    below = format.levels[len(format.prefix) :]
    digits = [digit for level in above for digit in level.digits]
    located = all(level.extent.covers for level in above) and [digit.axis for digit in digits] == list(range(rank - 1))
    listed = not last.extent.covers and [digit.axis for digit in last.digits] == [rank - 1]
    tiles = [digit.axis for level in below for digit in level.digits]
    apart = all(len(level.digits) == 1 for level in below) and len(set(tiles)) == len(tiles)
    return not format.bindings and located and listed and apart and set(tiles) <= {rank - 2, rank - 1}


def _walked(pattern: Pattern, columns: bool) -> Pattern:
    """The stored blocks in the order of their rows or columns."""
    source, rank = pattern.part(), len(pattern.shape)
    rows, cols = (rank - 1, rank - 2) if columns else (rank - 2, rank - 1)
    zero = torch.zeros(1, dtype=torch.int64, device=source.device)
    places = source.tile_axes() if source.format.tile else [zero] * rank
    sides = [int(place.max()) + 1 if place.numel() else 1 for place in places]
    axes, sound = source.slot_axes()
    if source.valid is not None and not source.format.tile:
        sound = sound & source.valid
    slots = sound.nonzero().reshape(-1)
    lead = [axis for axis in range(rank - 2) if axis >= len(source.format.batch)]
    grid = [math.ceil(pattern.shape[axis] / sides[axis]) for axis in (*lead, rows, cols)]
    numbers = [axes[axis][slots] // sides[axis] for axis in (*lead, rows, cols)]
    key = torch.zeros_like(slots)
    for number, size in zip(numbers, grid):
        key = key * size + number
    order = torch.sort(key, stable=True).indices
    bounds = torch.arange(math.prod(grid[:-1]) + 1, device=source.device) * grid[-1]
    level = rank - 1
    arrays = {f"pos{level}": torch.searchsorted(key[order], bounds), f"crd{level}": numbers[-1][order]}
    arrays = {name: array.to(torch.int32) for name, array in arrays.items()}
    valid = None
    if source.valid is not None and source.format.tile:
        valid = torch.zeros(len(slots), sides[rows], sides[cols], dtype=torch.bool, device=slots.device)
        valid[:, places[rows], places[cols]] = source.valid[slots[order]].reshape(len(slots), -1)
        valid = valid.reshape(len(slots), *(side for side in (sides[rows], sides[cols]) if side > 1))
    format = Format.parse(_text(source, columns, sides[rows], sides[cols]))
    shape = (*pattern.shape[:-2], pattern.shape[rows], pattern.shape[cols])
    made = Pattern(format, {"": Structure(format, shape, arrays, len(slots), pattern.device, valid)})
    if pattern.device.type != "cpu":  # what is uneven in it is known, without a wait
        made.uneven = (*pattern.uneven[:-2], pattern.uneven[rows], pattern.uneven[cols])
    return made


def _text(source: Structure, columns: bool, height: int, width: int) -> str:
    """Lists under dense rows, with a dense tile below of what is more than one."""
    rank = len(source.shape)
    lead = "bh"[2 - (rank - 2) :] if rank > 2 else ""
    row, column = "ji" if columns else "ij"
    kinds = ["batch" if n < len(source.format.batch) else "dense" for n in range(rank - 2)]
    levels = [f"{name} : {kind}" for name, kind in zip(lead, kinds)]
    for name, side, kind in ((row, height, "dense"), (column, width, "compressed")):
        levels.append(f"{name} floordiv {side} : {kind}" if side > 1 else f"{name} : {kind}")
    levels += [f"{name} mod {side} : dense" for name, side in ((row, height), (column, width)) if side > 1]
    return f"({', '.join([*lead, row, column])}) -> ({', '.join(levels)})"

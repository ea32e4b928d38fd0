# SPDX-License-Identifier: Apache-2.0
"""From coordinates to a pattern, part by part."""

from __future__ import annotations

import dataclasses

import torch

from ..errors import FormatError
from ..formats import Sum, as_format
from .batch import shared_places
from .pattern import Pattern
from .split import accepted
from .structure import Structure, build_structure
from .uneven import uneven_axes
from .widths import INTEGERS


@dataclasses.dataclass
class Filled:
    """Which entry fills which place of a part's flat values: `values[at] = entries[source]`."""

    at: torch.Tensor  # int64 [n]
    source: torch.Tensor | None  # int64 [n]; None when they are all, in order


def for_tensor(format, shape):
    """A format or sum for tensors of `shape`, with code for all its levels. Raises `FormatError`."""
    format = as_format(format).for_shape(shape)
    format.require_code("pack")
    for part in format.parts.values() if isinstance(format, Sum) else [format]:
        _require_room(part, shape)
    return format


def _require_room(format, shape) -> None:
    """Raise `FormatError` where a companion could not list the coordinates of a dense level in the type it says."""
    sizes = format.name_sizes(shape)
    for level in format.levels:
        width = level.coordinate.width_of("crd") if level.coordinate.implicit else None
        if width and level.size(sizes) - 1 > torch.iinfo(INTEGERS[width]).max:
            raise FormatError(
                f"'{level.text(format.names)}' has {level.size(sizes)} coordinates, which do not fit into {width}; "
                "leave the integer type out"
            )


def build_pattern(
    format, shape, axes, distinct: bool, whole: bool = False, counts: bool = True, ordered: bool = False
) -> tuple[Pattern, dict[str, Filled]]:
    """The pattern of the entries at `axes` (int64 [n] per axis), and what fills the values of each part.

    `distinct` says that no two entries are at one place; only formats that keep duplicates take others. With `whole`
    each entry stands for a stored block that is full, and what it fills is the block's slot. `counts` finds what is
    uneven in it, for which the host waits. `ordered` says that they come in the order of the levels of `format`, which
    is no sum and has no batch.
    """
    if format.batch:
        shared = shared_places(format.batch, shape, axes, distinct)
        pattern, own = _build(format, shape, shared.axes, shared.distinct, whole)
        filled = {name: Filled(*shared.filled(pattern.part(name), each.at, each.source)) for name, each in own.items()}
    else:
        pattern, filled = _build(format, shape, axes, distinct, whole, ordered)
    if counts and pattern.device.type != "cpu":
        pattern.uneven = uneven_axes(shape, axes, blocks=any(part.format.tile for part in pattern.parts.values()))
    return pattern, filled


def _build(
    format, shape, axes, distinct: bool, whole: bool, ordered: bool = False
) -> tuple[Pattern, dict[str, Filled]]:
    parts = format.parts if isinstance(format, Sum) else {"": format}
    structures: dict[str, Structure] = {}
    filled: dict[str, Filled] = {}
    left = None
    for name, part in parts.items():
        mine = left
        if isinstance(format, Sum) and name in format.predicates:
            accept = accepted(part, format.predicates[name], shape, _at(axes, left))
            mine, left = _among(left, accept), _among(left, ~accept)
        structures[name], at, order = build_structure(part, shape, _at(axes, mine), distinct, whole, ordered)
        filled[name] = Filled(at, order if mine is None else mine if order is None else mine[order])
    return Pattern(format, one_width(structures)), filled


def _at(axes, index):
    return axes if index is None else [axis[index] for axis in axes]


def _among(index, accept: torch.Tensor) -> torch.Tensor:
    found = accept.nonzero().reshape(-1)
    return found if index is None else index[found]


def one_width(structures: dict[str, Structure]) -> dict[str, Structure]:
    """All parts with int64 arrays when one needs them."""
    wide = any(t.dtype == torch.int64 for part in structures.values() for t in part.buffers.values())
    if not wide or len(structures) == 1:
        return structures
    return {name: part.widened() for name, part in structures.items()}

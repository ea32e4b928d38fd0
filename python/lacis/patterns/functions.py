# SPDX-License-Identifier: Apache-2.0
"""The functions that make derived arrays, one for each attribute of that name in the compiler's dialect.

`derived.json` beside this file has their parameters, and names, dtypes and sizes of what they make, as the compiler
says them. Parameters have the attribute's names; the first argument is what the arrays are made from.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

from ..errors import FormatError
from ..formats import Format
from .balance import gathered_shares, group_lists, panel_cost, share_lists
from .derivation import Cost, Derivation
from .derived import companion_arrays, companion_waits
from .parts import gathered_part_lists, part_lists
from .pieces import cut_lists
from .regroup import LOADED, Regrouped, regroup
from .structure import Structure

_HALF, _SUM = 2, 4  # bytes of an element, and of its sum
_ROUND = 64  # elements of the dense axis that a round sums over


def index(structure: Structure, *, format: str, least: int = 0) -> dict[str, torch.Tensor]:
    """The arrays of a companion with this format: `pos1`, `crd1`, `link2`; see `companion_arrays`."""
    return companion_arrays(structure, format, least=least)


def layout(
    structure: Structure,
    *,
    format: str,
    capacity: int | None = None,
    swizzle: int = 0,
    slots: torch.Tensor | None = None,
) -> Regrouped:
    """The execution layout with this format; see `regroup`. Rows of tiles that are parts of a panel are reordered.

    Those of a panel that is loaded at once keep their order: there is nothing to even out.

    `swizzle` is said of a copy of the values; it changes no array of the pattern. `slots` as in `regroup`.
    """
    made = Format.parse(format)
    outer = made.levels[len(structure.shape) - 2].digits[0]
    reorder = 0 < _tile_size(structure.format, outer.axis) < outer.div and outer.div > LOADED
    return regroup(structure, made, capacity=capacity, reorder=reorder, slots=slots)


def tile_schedule(
    source: Regrouped,
    *,
    columns: int,
    swizzle_group: int,
    cost: Cost,
    period: int | None = None,
    split: int | None = None,
    workers: int | None = None,
) -> dict[str, torch.Tensor]:
    """Work lists over the panels of a layout and tiles of so many columns: `pos2`, `crd2`, `crd3`; see `group_lists`.

    With `split` they are those of `cut_lists`, up to `crd8`. `workers` are by default the processors of the device.
    Raises `FormatError` without a `period`: such lists are of an extent, which no pattern knows.
    """
    _require_layout(source, "tile_schedule")
    if period is None:
        raise FormatError(
            "tile_schedule: lists without a period are of one extent; lacis.patterns.balance has work_lists"
        )
    workers = workers or _workers(source.structure)
    (rows, depth), inner = source.format.tile, source.format.levels[1].digits[0]
    time = panel_cost(
        source.arrays,
        tile_bytes=rows * depth * _HALF,
        step_bytes=columns * inner.div * _HALF,
        cycles=rows * depth * columns / cost.products,
        cost=cost,
    )
    if split is None:
        return group_lists(time, workers=workers, raster=swizzle_group, groups=period)
    return cut_lists(
        source.arrays["pos1"].diff().long(),
        time,
        fixed=cost.panel / 1e3,
        kept=source.format.levels[0].digits[0].div * columns * _SUM / cost.bytes,
        adding=(cost.start / 1e3, cost.part / 1e3, cost.move / 1e3),
        workers=workers,
        raster=swizzle_group,
        groups=period,
        cut=split,
    )


def segment_schedule(
    source: Regrouped,
    *,
    length: int,
    cost: Cost,
    span: int | None = None,
    split: int | None = None,
    workers: int | None = None,
) -> dict[str, torch.Tensor]:
    """Work lists of segments of the panels of a layout: `pos1`, `crd1`, `crd2`; see `share_lists`.

    With `span` they are those of `gathered_shares`, with `split` they have two lists for each worker: see `part_lists`
    and `gathered_part_lists`. `workers` are by default the processors of the device.
    """
    _require_layout(source, "segment_schedule")
    workers = workers or _workers(source.structure)
    outer, inner = (source.format.levels[n].digits[0].div for n in (0, 1))
    positions = source.arrays["pos1"]
    if span is not None:
        given = {"by": length, "within": span, "workers": workers, "segment": cost.segment}
        columns = source.arrays["crd1"] * inner
        if split is None:
            return gathered_shares(positions, columns, **given)
        return gathered_part_lists(positions, columns, **given, parts=split, kept=cost.kept)
    # A share takes the time of its products or that of its bytes, per round.
    n = torch.arange(length + 1, dtype=torch.float64, device=positions.device)
    copies = (n * inner + outer) * _ROUND * _HALF / cost.bytes
    products = torch.full_like(n, length * inner * outer * _ROUND / cost.products / cost.clock)
    time, steps = torch.maximum(products, copies), positions.diff().long()
    given = {"by": length, "workers": workers, "most": len(source.arrays["crd1"])}
    if split is None:
        return share_lists(steps, time, **given)
    return part_lists(steps, time, **given, parts=split, kept=cost.kept)


FUNCTIONS = {each.__name__: each for each in (index, layout, tile_schedule, segment_schedule)}


def make(
    step: Derivation, source: Structure | Regrouped, slots: Callable[[], torch.Tensor | None] = lambda: None
) -> dict[str, torch.Tensor] | Regrouped:
    """What a step makes from `source`; `slots` gives the grid that layouts are made from, where that is kept.

    Raises `FormatError` where no function has its name.
    """
    function = FUNCTIONS.get(step.function)
    if function is None:
        raise FormatError(f"no function '{step.function}' makes derived arrays; there are {', '.join(FUNCTIONS)}")
    return function(source, **step.given, **({"slots": slots()} if function is layout else {}))


def waits(step: Derivation, structure: Structure) -> bool:
    """Does the host wait for the device while a step makes its arrays?"""
    is_companion = step.function == "index" and len(step.parameters) == 1
    return not is_companion or companion_waits(structure, step.given["format"])


def _tile_size(format: Format, axis: int) -> int:
    """How many coordinates of an axis a stored block or a tile has; 0 of a matrix without blocks."""
    return next((level.digits[0].mod for level in format.levels[-2:] if level.digits[0].axis == axis), 1)


def _require_layout(source, name: str) -> None:
    if not isinstance(source, Regrouped):
        raise FormatError(f"{name}: work lists are over the panels of a layout, not over '{source.format}' itself")


def _workers(structure: Structure) -> int:
    if structure.device.type == "cuda":
        return torch.cuda.get_device_properties(structure.device).multi_processor_count
    return os.cpu_count() or 1

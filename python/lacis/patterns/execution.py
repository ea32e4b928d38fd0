# SPDX-License-Identifier: Apache-2.0
"""Derived structures of tile kernels by the texts that artifacts give them: a rule, then the text of a format.

`regroup capacity 12 lines 32 #lacis.format<...>` is an execution layout, `balance by 256 raster 4 groups 16 of regroup
#lacis.format<...> #lacis.format<...>` are work lists over the panels of one, `balance positions 8 of regroup ...` over
shares of 8 steps, `balance positions 32 within 640 of regroup ...` over shares of up to 32 steps within 640 columns.
`least 256 #lacis.format<...>` is a companion index of the rows with at least 256 entries.
"""

from __future__ import annotations

import dataclasses
import os

import torch

from ..errors import FormatError
from ..formats import Format
from .balance import gathered_shares, group_lists, panel_cost, share_lists
from .copies import Refill, copy_units, copy_units_again, have_room
from .derived import companion_arrays
from .parts import gathered_part_lists, part_lists
from .pieces import cut_lists
from .regroup import Regrouped, regroup
from .structure import Structure

# What a panel costs beside its products and copies, in microseconds, by the rows of its tiles' columns.
_FIXED = 0.6
_HALF, _SUM = 2, 4  # bytes of an element, and of its sum
_ROUND = 64  # elements of the dense axis that a round sums over


def is_rule(text: str) -> bool:
    """Is this the text of a rule, and not of a companion's format?"""
    return text.startswith(("regroup", "balance", "least"))


def _options(words: list[str]) -> dict[str, int]:
    return {name: int(value) for name, value in zip(words[::2], words[1::2])}


def without_lines(text: str) -> str:
    """The text of a layout, apart from how the chunks of its values are exchanged."""
    return text.replace(f" lines {line_bytes(text)}", "", 1)


@dataclasses.dataclass(frozen=True)
class TileCopy:
    """Makes the copy of values in an execution layout, in `dtype` or their own; `places` are those of `unit_places`."""

    block: tuple[int, int]
    tile: tuple[int, int]
    positions: int
    dtype: torch.dtype | None = None

    @staticmethod
    def of(layout: Regrouped, dtype: torch.dtype | None = None) -> TileCopy:
        return TileCopy(tuple(layout.structure.format.tile), tuple(layout.format.tile), len(layout.tile_rows), dtype)

    def __call__(self, values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return copy_units(values.to(self.dtype or values.dtype), places, self.positions, self.block, self.tile)

    def fits(self, tiles: torch.Tensor, values: torch.Tensor) -> bool:
        """Can `again` make the copy of these values in the `tiles` of an earlier one?"""
        return tiles.dtype == (self.dtype or values.dtype) and have_room(tiles, self.block, self.tile)

    def again(self, tiles: torch.Tensor, values: torch.Tensor, places: torch.Tensor) -> None:
        """Make the copy of other values in the `tiles` of an earlier one."""
        copy_units_again(tiles, values.to(self.dtype or values.dtype), places, self.block, self.tile)

    def refill(self, tiles: torch.Tensor, values: torch.Tensor, places: torch.Tensor) -> Refill:
        """`again` into the same tiles at each call, of values in their dtype."""
        return Refill(tiles, values.to(self.dtype or values.dtype), places, self.block, self.tile)


def execution_layout(structure: Structure, text: str, slots: torch.Tensor | None = None) -> Regrouped:
    """The execution layout that a text beginning with `regroup` names; `slots` as in `regroup`."""
    head, mark, format = text.partition("#lacis.format<")
    word, *rest = head.split()
    if word != "regroup" or not mark:
        raise FormatError(f"'{text}' is no execution layout")
    found = format.removesuffix(">")
    outer = Format.parse(found).levels[0].digits[0]
    reorder = 0 < _tile_size(structure.format, outer.axis) < outer.div
    return regroup(structure, found, capacity=_options(rest).get("capacity"), reorder=reorder, slots=slots)


def _tile_size(format: Format, axis: int) -> int:
    """How many coordinates of an axis a stored block or a tile has; 0 of a matrix without blocks."""
    return next((level.digits[0].mod for level in format.levels[-2:] if level.digits[0].axis == axis), 1)


def long_rows(structure: Structure, text: str) -> dict[str, torch.Tensor]:
    """The arrays of the companion that a text beginning with `least` names: of the rows with so many entries."""
    head, mark, format = text.partition("#lacis.format<")
    return companion_arrays(structure, mark + format, least=_options(head.split())["least"])


def line_bytes(text: str) -> int:
    """The bytes of a row of tiles whose chunks are exchanged, 0 where none are, as in work lists.

    >>> line_bytes("regroup capacity 12 lines 32 #lacis.format<>")
    32
    >>> line_bytes("balance by 256 raster 4 groups 16 of regroup #lacis.format<>")
    0
    """
    word, *options = text.partition("#")[0].split() or [""]
    return _options(options).get("lines", 0) if word == "regroup" else 0


def execution_lists(structure: Structure, text: str, layout: Regrouped) -> dict[str, torch.Tensor]:
    """The work lists that a text beginning with `balance` names, over the panels of `layout`."""
    options = _options(text.partition(" of ")[0].split()[1:])
    workers = _workers(structure)
    if "within" in options:
        positions, step = layout.arrays["pos1"], layout.format.levels[1].digits[0].div
        columns = layout.arrays["crd1"] * step
        given = {"by": options["positions"], "within": options["within"], "workers": workers}
        if "parts" not in options:
            return gathered_shares(positions, columns, **given)
        return gathered_part_lists(positions, columns, **given, parts=options["parts"])
    if "positions" in options:
        return _shares(layout, options, workers)
    (rows, columns), inner = layout.format.tile, layout.format.levels[1].digits[0]
    cost = panel_cost(
        layout.arrays,
        tile_bytes=rows * columns * _HALF,
        step_bytes=options["by"] * inner.div * _HALF,
        cycles=rows * columns / 1024 * options["by"] / 2,
        fixed=_FIXED,
    )
    if "cut" not in options:
        return group_lists(cost, workers=workers, raster=options["raster"], groups=options["groups"])
    steps = layout.arrays["pos1"].diff().long()
    given = {name: options[name] for name in ("raster", "groups", "cut")}
    kept = layout.format.levels[0].digits[0].div * options["by"] * _SUM / 70e3
    return cut_lists(steps, cost, fixed=_FIXED, kept=kept, workers=workers, **given)


def _workers(structure: Structure) -> int:
    if structure.device.type == "cuda":
        return torch.cuda.get_device_properties(structure.device).multi_processor_count
    return os.cpu_count() or 1


def _shares(layout: Regrouped, options: dict[str, int], workers: int) -> dict[str, torch.Tensor]:
    """Work lists of shares of so many steps; a share takes the time of its products or that of its bytes, per round."""
    by = options["positions"]
    outer, inner = (layout.format.levels[n].digits[0].div for n in (0, 1))
    positions = layout.arrays["pos1"]
    n = torch.arange(by + 1, dtype=torch.float64, device=positions.device)
    copies = (n * inner + outer) * _ROUND * _HALF / 70e3
    products = torch.full_like(n, by * inner / 2 * outer / 64 * _ROUND / 16 / 1.5e3)
    cost, most = torch.maximum(products, copies), len(layout.arrays["crd1"])
    steps = positions.diff().long()
    if "parts" not in options:
        return share_lists(steps, cost, by=by, workers=workers, most=most)
    return part_lists(steps, cost, by=by, workers=workers, most=most, parts=options["parts"])


def layout_of_lists(text: str) -> str:
    """The text of the layout whose panels the lists of a text hand out."""
    source = text.partition(" of ")[2]
    return source[: source.rindex("#lacis.format<")].strip()

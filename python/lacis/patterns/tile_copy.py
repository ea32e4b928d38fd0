# SPDX-License-Identifier: Apache-2.0
"""Copies of values in an execution layout."""

from __future__ import annotations

import dataclasses

import torch

from .copies import Refill, copy_units, copy_units_again, have_room
from .regroup import Regrouped


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

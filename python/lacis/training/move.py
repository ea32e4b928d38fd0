# SPDX-License-Identifier: Apache-2.0
"""From one pattern to the next: made and checked as a whole, then written, with all that follows by entry."""

from __future__ import annotations

import dataclasses

import torch

from ..errors import DataError
from ..nn.ranks import is_under_ddp
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.places import place_pattern, rows_at
from ..patterns.room import may_have_room, with_room


class Move:
    """The next pattern of a weight, as a decision says.

    Nothing has changed until `write`. `rows` takes any numbers of entries along: those of entries that stay go with
    them, those that come have `fresh` ones. `derives` as in `lacis.nn.replace.Replacement`.
    """

    def __init__(self, look, decision, resize: bool, room: bool, derives: bool = True):
        self.layer, self._before = look.layer, look.places
        before, weight = look.places, self.layer.weight
        chosen = decision.after(look.view.positions)
        self._state = _first_of(chosen.source, look.view.count)
        if look.blocks is not None:
            chosen = look.blocks.entries(decision).after(before.positions)
        self._source, self._fresh = chosen.source, _first_of(chosen.source, len(before.positions))
        self._initial = chosen.initial.reshape(-1, before.width)
        self.pattern, self.places = place_pattern(weight.format, before.shape, chosen.positions, before.block)
        self.pattern.uneven = weight.described().pattern.uneven  # what schedules are told stays, without a wait
        if room:
            self._keep_room()
        if self.places.sizes != before.sizes:
            self._require_resize(resize)
        values = self.along(look.packed.values_by_part, self._initial)
        self._replacements = weight.replacements(PackedTensor(self.pattern, values), derives)
        self._arrays = {name: self._state_of(array) for name, array in self.layer.state.items()}

    def _keep_room(self) -> None:
        """The pattern in storage as long as before, where it fits there and the format may have room."""
        slots = next(iter(self._before.sizes.values()))[0]
        if not may_have_room(self.pattern.format) or self.pattern.part().slots > slots:
            return
        uneven, longer = self.pattern.uneven, with_room(self.pattern.part(), slots)
        self.pattern = Pattern(self.pattern.format, {"": longer})
        self.pattern.uneven = uneven
        self.places = dataclasses.replace(self.places, sizes={"": longer.values_shape})

    def _require_resize(self, resize: bool) -> None:
        """Raise `DataError` where the number of stored values may not change."""
        was, now = (sum(size[0] for size in places.sizes.values()) for places in (self._before, self.places))
        said = f"'{self.layer.name}' would have {now} stored places instead of {was}"
        if not resize:
            raise DataError(
                f"{said}, and attach(..., resize=False) does not let it: a format whose 'pos' counts (Csr, Csc, Coo, "
                "Bsr) keeps room for fewer than it began with, others take a policy that keeps the count, as Regrow"
            )
        if any(is_under_ddp(module) for module in self.layer.modules):
            raise DataError(
                f"{said}, which DistributedDataParallel does not see: its buckets keep the old size; take a policy "
                "that keeps the count, as Regrow, attach(..., resize=False), or wrap the model anew after the update"
            )

    def along(self, values: dict[str, torch.Tensor], fresh: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        """Numbers of the stored places before, by part, at the stored places afterwards; `fresh` where they grow."""
        rows = self._before.gather(values)
        if fresh is None:
            return self.places.scatter(rows_at(torch.cat([rows, rows.new_zeros(1, rows.shape[1])]), self._fresh))
        return self.places.scatter(rows_at(torch.cat([rows, fresh.to(rows.dtype)]), self._source))

    def along_new(self, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """`along`, where what grows begins as the values do."""
        return self.along(values, self._initial)

    def follow(self, weight):
        """The call that gives a copy of the weight the next pattern, made and ready."""
        replacements = weight.replacements(PackedTensor(self.pattern, self.along(weight.packed().values_by_part)))
        return lambda: weight.take(replacements, self.pattern)

    def _state_of(self, array: torch.Tensor) -> torch.Tensor:
        return torch.cat([array, array.new_zeros(1, *array.shape[1:])]).index_select(0, self._state)

    def write(self) -> None:
        """Put the pattern and its values into the weight."""
        self.layer.weight.take(self._replacements, self.pattern)
        self.layer.state.update(self._arrays)


def _first_of(source: torch.Tensor, count: int) -> torch.Tensor:
    """`source` where all that comes has one row: that behind the `count` places before."""
    return source.clamp(max=count)

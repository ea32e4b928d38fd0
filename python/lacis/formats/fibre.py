# SPDX-License-Identifier: Apache-2.0
"""What a level kind is given and answers when it is packed and read: entries, places, positions."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Callable

import torch

if TYPE_CHECKING:
    from .level import Level


class Buffers(dict):
    """A level's own arrays by their short names; `positions` is the one with an element for each position, or None.

    `exact` says that each position of the last level is known to hold an entry, so that what lies above them is sound.

    >>> Buffers(crd=torch.tensor([3, 5]), per_position="crd").positions
    tensor([3, 5])
    """

    def __init__(self, *arrays, per_position: str | None = None, exact: bool = False, **named):
        super().__init__(*arrays, **named)
        self.per_position = per_position
        self.exact = exact

    @property
    def positions(self) -> torch.Tensor | None:
        return self.get(self.per_position)


@dataclasses.dataclass
class Fibre:
    """What a level sees of the entries: `n` of them, under `parents` parent positions."""

    level: "Level"
    parents: int
    parent: torch.Tensor  # int64 [n], ascending: the parent position of each entry
    crd: torch.Tensor  # int64 [n]: the coordinate of each entry at this level
    find_begins: Callable[[], torch.Tensor]  # what `begins` is, where somebody asks
    size: int  # number of coordinates
    describe: Callable[[int], str] = "parent {}".format  # a parent position in words
    is_each: bool = False  # known to have a position for each entry

    @functools.cached_property
    def begins(self) -> torch.Tensor:
        """bool [n]: the entry is the first of its position."""
        return self.find_begins()

    @functools.cached_property
    def first(self) -> torch.Tensor:
        """int64 [positions]: the first entry of each position."""
        return self._numbers() if self.is_each else self.begins.nonzero().reshape(-1)

    @functools.cached_property
    def extra(self) -> torch.Tensor | None:
        """int64 [n]: how many positions without an entry lie before that of each entry, where it begins one."""
        return self.level.coordinate.extra(self)

    @functools.cached_property
    def ends(self) -> torch.Tensor:
        """int64 [n]: how many positions lie before the end of each entry's."""
        if self.is_each and self.extra is None:
            return self._numbers() + 1
        return torch.cumsum(self.begins.long() if self.extra is None else self.begins * (1 + self.extra), 0)

    @functools.cached_property
    def position(self) -> torch.Tensor:
        """int64 [n]: that of each entry, of those that entries take."""
        return self._numbers() if self.is_each and self.extra is None else self.ends - 1

    def starts(self) -> torch.Tensor:
        """int64 [parents + 1]: how many positions lie before each parent."""
        bounds = torch.arange(self.parents + 1, device=self.parent.device)
        if self.is_each and self.extra is None:
            return torch.searchsorted(self.parent, bounds)
        if self.extra is None and not self.level.coordinate.implicit:  # which ask for `first` as well
            return torch.searchsorted(self.parent.index_select(0, self.first), bounds)
        found = torch.searchsorted(self.parent, bounds)
        return torch.cat([self.ends.new_zeros(1), self.ends])[found]

    def _numbers(self) -> torch.Tensor:
        return torch.arange(self.crd.numel(), device=self.crd.device)


@dataclasses.dataclass
class Placed:
    """What an extent answers: where each entry went."""

    pos: torch.Tensor  # int64 [n]
    slots: int
    shape: tuple[int, ...]  # of a buffer with one element per position
    buffers: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Positions:
    """All positions of a level, in order: what an extent reads back."""

    above: torch.Tensor | Callable[[], torch.Tensor]  # `parent`, or what computes it
    found: torch.Tensor | Callable[[Positions], torch.Tensor]  # `offset`, or what computes it: few ask for it
    slots: int
    valid: torch.Tensor | None = None  # bool [slots]: it lies under a parent; None when all do
    width: int | None = None  # how many lie under each parent, where that is one number
    covers: bool = False  # every coordinate has one

    @functools.cached_property
    def parent(self) -> torch.Tensor:
        """int64 [slots]: the position that it lies under."""
        return self.above() if callable(self.above) else self.above

    @functools.cached_property
    def offset(self) -> torch.Tensor:
        """int64 [slots]: place within the parent's fibre."""
        return self.found(self) if callable(self.found) else self.found

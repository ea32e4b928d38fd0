# SPDX-License-Identifier: Apache-2.0
"""A packed weight whose pattern changes: what its policy sees of it, and what it is told to do."""

from __future__ import annotations

import math

import torch

from ..errors import DataError
from ..nn.sharded import whole
from ..patterns.places import Places, places_of
from ..patterns.room import may_have_room
from ..sparsifiers import Sparsifier, View
from .blocks import Blocks
from .collector import Collector
from .decision import Decision
from .move import Move


EVERYWHERE = None  # beside the names of parts: the gradient at all places


class Layer:
    """A weight of a built model, with the policy that chooses its places, if any, and the arrays of the policy."""

    def __init__(self, built):
        self.built, self.name, self.weight = built, built.name, built.weight
        site = built.captured.site
        self.block_size = site.block_size
        sparsifier = site.sparsifier
        self.policy = None if sparsifier is None or sparsifier.due() is None else self.bound(sparsifier)
        self.state: dict[str, torch.Tensor] = {}
        self._places = None, None  # of what pattern, and these
        self.sets_by_hand = self.weight.sets_by_hand
        self.keeps_room = False
        reads = getattr(self.policy, "reads", ())
        self.collector = Collector(self, self.policy) if "candidates" in reads else None

    @property
    def observes(self) -> bool:
        return getattr(self.policy, "needs_state", False)

    @property
    def values(self) -> dict[str, torch.nn.Parameter]:
        """The trained Parameters, by part."""
        return {name: part.values for name, part in self.weight._named_parts()}

    @property
    def modules(self) -> list[torch.nn.Module]:
        """The sparse modules that share the weight."""
        return [sparse for _, sparse in self.built.modules]

    def bound(self, sparsifier: Sparsifier) -> Sparsifier:
        """A sparsifier with the blocks of the weight, where it has such."""
        return sparsifier if self.block_size is None else sparsifier.with_block(self.block_size)

    def saved(self) -> dict[str, torch.Tensor]:
        """What `Updates.state_dict` holds of it, by name."""
        return dict(self.state)

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        """What `saved` answered, by the same names."""
        self.state = {name: array.to(self.weight.device).clone() for name, array in arrays.items()}

    def places(self, pattern, block: tuple[int, ...] | None) -> tuple[Places, Blocks | None]:
        """The places of its present pattern, and the blocks in which they lie where those are not stored whole.

        They are kept, until the pattern is another one, for a policy that looks at each step.
        """
        arrays = pattern.storage.values()
        revisions = tuple(part.revision for part in self.weight._parts())
        now = block, revisions, pattern.changes, tuple(array.data_ptr() for array in arrays)
        if self._places[0] == now:
            return self._places[1]
        places = places_of(pattern, block)
        grouped = block is not None and places.block is None
        found = places, Blocks(places, block) if grouped else None
        if self.observes:
            self._places = now, found
        return found

    def is_due(self, step: int) -> bool:
        return self.policy is not None and step in self.policy.due()

    def begin(self) -> None:
        """Make the arrays of the policy, where there are none yet."""
        if self.observes and not self.state:
            self.state = dict(self.policy.state(self._glance().view))

    def keep_room(self) -> None:
        """From now on its storage stays as long as it is where fewer values are stored, in formats that can."""
        self.keeps_room = True
        for part in self.weight._parts():
            if may_have_room(part.format):
                part.keep_room(True)

    def held(self) -> list[torch.Tensor] | None:
        """The tensors that an update writes where they lie; None where it does more than write into tensors."""
        return None if self.state or self.keeps_room else [*self.weight.parameters(), *self.weight.buffers()]

    def note_written(self, uneven: tuple[bool, ...]) -> None:
        """Something else than torch wrote another pattern of the same sizes, and its values, into `held()`."""
        for values in self.values.values():
            values.grad = None
        self.weight.follow_graph(uneven)

    def attached(self, copies) -> None:
        """From now on updates change it, and these counterparts in copies of the model."""

    def counterpart(self, module: torch.nn.Module, name: str):
        """What follows the weight in a copy of the model, which calls it so; None where there is none."""
        try:
            found = module.get_submodule(name)
        except AttributeError:
            return None
        return found if getattr(found, "is_packed_weight", False) else None

    def _glance(self):
        """What its policy sees, without gradients."""
        return Look(self, self.policy, 0)

    def arrived(self, sparsifier: Sparsifier, group=None) -> dict[str | None, torch.Tensor]:
        """The gradients that a sparsifier reads: by part, and `EVERYWHERE`. Raises `DataError` where one is missing."""
        reads = getattr(sparsifier, "reads", frozenset())
        found = self._gradients(sparsifier) if "grad" in reads else {}
        if "candidates" in reads:
            if self.collector is None or sparsifier is not self.policy:
                raise DataError(
                    f"'{self.name}': {type(sparsifier).__name__} reads the gradient of empty places, which the passes "
                    "before an update collect for the policy of the schedule alone; give it to sparsify()"
                )
            found = {**found, EVERYWHERE: self.collector.arrived(group)}
        return found

    def look(self, sparsifier: Sparsifier, step: int, group=None) -> Look:
        """What a sparsifier sees of the weight; a gradient it reads must be there. Raises `DataError`."""
        return self.look_with(sparsifier, step, self.arrived(sparsifier, group))

    def look_with(self, sparsifier: Sparsifier, step: int, arrived: dict[str | None, torch.Tensor]) -> Look:
        """`look` with the gradients that `arrived` answers, or others of the same sizes."""
        look, of_parts = Look(self, sparsifier, step), dict(arrived)
        everywhere = of_parts.pop(EVERYWHERE, None)
        if of_parts:
            look.view.grad = look.rows(of_parts)
        if everywhere is not None:
            look.view.candidates = self.collector.candidates(everywhere, look.view)
        for name, array in self.state.items():
            if len(array) != look.view.count:
                raise DataError(
                    f"'{self.name}': '{name}' of the updates has {len(array)} rows, the weight {look.view.count} "
                    "places; load the states of the model and of the updates that were saved together"
                )
        return look

    def _gradients(self, sparsifier) -> dict[str, torch.Tensor]:
        found = {name: None if values.grad is None else whole(values.grad) for name, values in self.values.items()}
        if any(grad is None for grad in found.values()):
            self._refuse_no_gradient(sparsifier)
        return found

    def _refuse_no_gradient(self, sparsifier):
        raise DataError(
            f"'{self.name}' has no gradient, which {type(sparsifier).__name__} reads; call step() after backward() "
            "and before zero_grad()"
        )


class Look:
    """A weight at one moment: its pattern, its places as they are stored, and the view of a sparsifier."""

    @property
    def takes_next(self) -> bool:
        """Can it be told all places that come next, of which only the device knows which are new?"""
        return self.blocks is None

    def __init__(self, layer: Layer, sparsifier: Sparsifier, step: int):
        self.layer, self.packed = layer, layer.weight.packed()
        block = getattr(sparsifier, "block", None)
        block = (
            block if isinstance(block, tuple) and block else None
        )  # of a rule it is a side, `()` of a policy entries
        if block is not None and math.prod(block) == 1:
            block = None
        self.places, self.blocks = layer.places(self.packed.pattern, block)
        self.view = View(
            layer.name,
            step,
            tuple(self.packed.shape),
            block,
            self.places.positions if self.blocks is None else self.blocks.positions,
            self.rows(self.packed.values_by_part),
            state=layer.state,
            policy_seed=getattr(sparsifier, "seed", 0),
        )

    def rows(self, values: dict[str, torch.Tensor]) -> torch.Tensor:
        """Tensors of the parts' values, a row for each place: [count], or [count, elements of a block]."""
        rows = self.places.gather(values)
        if self.blocks is not None:
            return self.blocks.rows(rows)
        return rows if self.places.block is not None else rows.reshape(-1)

    def moved(self, decision, resize: bool, derives: bool = True):
        """What writes a decision and takes followers along, made and ready; None where it changes nothing."""
        return Move(self, decision, resize, self.layer.keeps_room, derives) if decision.changes else None

    def fitted(self):
        """What writes the pattern that it has into storage as long as it needs; None where that is so."""
        if not any(part.has_room for part in self.layer.weight._parts()):
            return None
        device = self.places.positions.device
        none = torch.empty(0, dtype=torch.int64, device=device)
        stays = Decision(torch.arange(self.view.count, device=device), none, self.view.values[:0], False)
        return Move(self, stays, resize=True, room=False)

# SPDX-License-Identifier: Apache-2.0
"""A dense weight that stays, whose packed entries are chosen anew when a policy or a `Ramp` says."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..nn.sharded import whole
from ..sparsifiers import Sparsifier, View
from ..sparsifiers.choose import blocked
from .layer import Layer


class MasterLayer(Layer):
    """As a `Layer`, of whose places all hold a value: a policy keeps some, and none is lost.

    What trains is the dense Parameter, so neither optimizers nor copies of its values have anything to follow.
    """

    def __init__(self, built):
        super().__init__(built)
        self.master = built.master

    @property
    def values(self) -> dict[str, torch.nn.Parameter]:
        return {}

    @property
    def dense(self) -> torch.nn.Parameter:
        return self.built.forwards[0].weight

    def held(self) -> None:
        return None

    def attached(self, copies) -> None:
        for master in (self.master, *copies):
            master.is_chosen_anew = self.policy is None

    def counterpart(self, module: torch.nn.Module, name: str):
        try:
            found = module.get_submodule(name.rpartition(".")[0])
        except AttributeError:
            return None
        return getattr(vars(found).get("forward"), "master", None)

    def _glance(self):
        return MasterLook(self, self.policy, 0)

    def look(self, sparsifier: Sparsifier, step: int, group=None) -> MasterLook:
        if self.master.is_chosen_anew:
            raise DataError(
                f"'{self.name}': its entries follow the dense weight in each call, so nothing changes them once; give "
                "sparsify() a Ramp or a policy, which says when"
            )
        look, grad = MasterLook(self, sparsifier, step), self.dense.grad
        if "grad" in getattr(sparsifier, "reads", ()):
            if grad is None:
                self._refuse_no_gradient(sparsifier)
            look.view.grad = look.rows(grad)
        return look

    def saved(self) -> dict[str, torch.Tensor]:
        """Beside the arrays of the policy the places that are kept: the dense weight does not say them."""
        return {**self.state, "kept": self.master.positions.clone()}

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        arrays = dict(arrays)
        self.master.keep(arrays.pop("kept"))
        super().load(arrays)


class MasterLook:
    """A dense weight at one moment, as a policy sees it."""

    takes_next = False  # it keeps places of its own: see `kept`

    def __init__(self, layer: MasterLayer, sparsifier: Sparsifier, step: int):
        self.layer, places = layer, layer.master.places
        self._shape, self._block = places.shape, places.block
        block = getattr(sparsifier, "block", None)
        if (block or None) != self._block:
            of = f"blocks of {list(block)}" if block else "entries"
            stored = f"blocks of {list(self._block)}" if self._block else "entries"
            raise DataError(
                f"'{layer.name}': {type(sparsifier).__name__} chooses {of}, the weight stores "
                f"{stored}; take blocks that divide it"
            )
        values = self.rows(layer.dense)
        positions = torch.arange(len(values), device=values.device)
        seed = getattr(sparsifier, "seed", 0)
        self.view = View(
            layer.name, step, self._shape, self._block, positions, values, state=layer.state, policy_seed=seed
        )

    def rows(self, dense: torch.Tensor) -> torch.Tensor:
        """[places], or [places, elements of a block]."""
        dense = whole(dense.detach()).reshape(self._shape)
        return dense.reshape(-1) if self._block is None else blocked(dense, self._block).flatten(0, -2)

    def moved(self, decision, resize: bool) -> MasterMove | None:
        """What writes a decision, made and ready; None where it keeps the places that are kept."""
        keep, before = decision.keep, self.layer.master.positions
        if len(keep) == len(before) and keep.device.type == "cpu" and torch.equal(keep, before):
            return None
        if len(keep) != len(before) and not resize:
            raise DataError(
                f"'{self.layer.name}' would have {len(keep)} stored places instead of {len(before)}, and "
                "attach(..., resize=False) does not let it; take a policy that keeps the count"
            )
        return MasterMove(self.layer, keep)


class MasterMove:
    """The places that a dense weight keeps from now on."""

    def __init__(self, layer: MasterLayer, positions: torch.Tensor):
        self.layer, self._positions, self.write = layer, positions, layer.master.kept(positions)

    def follow(self, master):
        """The call that has a copy's weight keep the same, made and ready."""
        return master.kept(self._positions)

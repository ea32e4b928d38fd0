# SPDX-License-Identifier: Apache-2.0
"""A copy of a model, as a moving average keeps, whose weights follow the patterns of the model by entry."""

from __future__ import annotations

import torch

from ..errors import DataError


class ModuleFollower:
    """A module with packed weights of the same names: they get each pattern, and grown entries begin with 0."""

    def __init__(self, module: torch.nn.Module):
        self.module = module
        self.title = type(module).__name__
        self.weights: dict[str, torch.nn.Module] = {}

    def require_follows(self, layers) -> None:
        """Raise `DataError` unless it has each weight, with the same pattern."""
        for layer in layers:
            self.weights[layer.name] = self._find(layer)
            self.check(layer)

    def _find(self, layer):
        for name in (layer.name, f"module.{layer.name}"):  # the latter in what wraps a model, as AveragedModel
            if (found := layer.counterpart(self.module, name)) is not None:
                return found
        raise DataError(
            f"{self.title} has no packed weight '{layer.name}' that could follow; give a copy of the built model"
        )

    def check(self, layer) -> None:
        """Raise `DataError` where the weight has another pattern than the model's."""
        mine, theirs = self.weights[layer.name].packed(), layer.weight.packed()
        same = mine.format == theirs.format and mine.shape == theirs.shape
        if not same or not all(_equal(mine.storage[name], array) for name, array in theirs.storage.items()):
            raise DataError(
                f"'{layer.name}' of {self.title} has another pattern than the model, so its values are of other "
                "entries; copy the model, or load its state dict, before attach()"
            )

    def held_for(self, layer) -> None:
        """None: `check` waits for the device."""

    def moved(self, move) -> list:
        """The call that writes the next pattern of a weight, made and ready."""
        return [move.follow(self.weights[move.layer.name])]


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.to(other.device, other.dtype), other)

# SPDX-License-Identifier: Apache-2.0
"""Loads state dicts of the dense model into a packed layer, whose pattern stays."""

from __future__ import annotations

import dataclasses

import torch

from ..errors import DataError
from ..operators import OPERATORS


class TakesDenseStates:
    """Base of modules that have a packed `weight`: a dense one in a state dict gives the values at its entries."""

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs):
        _pack(self.weight, state_dict, prefix + OPERATORS[self.operator].attribute, error_msgs)
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs)


@dataclasses.dataclass(frozen=True)
class TakesDenseState:
    """The hook that does so for a module that stayed, with a packed weight for its parameter `attribute`."""

    attribute: str
    followers: tuple[str, ...]  # the module's parameters after it

    def __call__(self, module, state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs):
        _pack(getattr(module, self.attribute), state_dict, prefix + self.attribute, error_msgs)

    @staticmethod
    def put_in(module, attribute: str, weight) -> None:
        """The packed weight in place of the parameter."""
        names = list(module._parameters)
        followers = tuple(names[names.index(attribute) + 1 :])
        del module._parameters[attribute]
        module._modules[attribute] = weight
        module.register_load_state_dict_pre_hook(TakesDenseState(attribute, followers))

    @staticmethod
    def put_back(module, attribute: str, parameter) -> None:
        """The parameter in place of the packed weight, where it stood among the others."""
        hooks, held, followers = module._load_state_dict_pre_hooks, module._parameters, ()
        for number, hook in list(hooks.items()):
            known = getattr(hook, "hook", hook)
            if isinstance(known, TakesDenseState) and known.attribute == attribute:
                followers = known.followers
                del hooks[number]
        del module._modules[attribute]
        later = {name: held.pop(name) for name in list(held) if name in followers}
        held[attribute] = parameter
        held.update(later)


def _pack(weight, state_dict, name: str, error_msgs) -> None:
    """In a state dict, put a dense weight's entries in place of the packed arrays that it lacks."""
    dense = state_dict.pop(name, None)
    if not isinstance(dense, torch.Tensor):
        return
    present = {f"{name}.{key}": tensor.clone() for key, tensor in weight.state_dict().items()}
    try:
        values = weight.dense_state(dense.detach().to(weight.device))
        present.update({f"{name}.{key}": tensor for key, tensor in values.items()})
    except DataError as error:
        error_msgs.append(f"while loading '{name}': {error.message}")
    state_dict.update(present)

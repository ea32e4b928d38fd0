# SPDX-License-Identifier: Apache-2.0
"""What an optimizer keeps for each value follows its entry; what cannot is refused by name."""

from __future__ import annotations

import collections
import copy
import math

import torch

from ..errors import DataError
from ..nn.sharded import shared_out, whole


class OptimizerFollower:
    """An optimizer: each floating tensor of a parameter's shape in its state goes with the entries.

    Grown entries begin with 0, in a key that starts with `master` with the new value. Numbers and tensors of one
    element, as `step`, stay.
    """

    def __init__(self, optimizer: torch.optim.Optimizer):
        while isinstance(wrapped := getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
            optimizer = wrapped  # of Accelerate
        self.optimizer = optimizer
        self.title = type(optimizer).__name__

    def held(self) -> set[int]:
        """The ids of the parameters that it trains."""
        return {id(each) for group in self.optimizer.param_groups for each in group["params"]}

    def require_follows(self, layers) -> None:
        """Raise `DataError` for a state that cannot follow, also for what the first step would make."""
        if isinstance(self.optimizer, torch.optim.LBFGS):
            raise DataError(
                "LBFGS keeps 'old_dirs' and 'old_stps', histories over all parameters in one vector, which cannot "
                "follow entries; take another optimizer for weights whose patterns change"
            )
        held = self.held()
        for layer in layers:
            for values in layer.values.values():
                if id(values) in held:
                    state = self.optimizer.state.get(values) or self._first_state(values)
                    self._check(layer.name, values.shape, state)

    def check(self, layer) -> None:
        """Raise `DataError` where the state of a weight, as it is now, cannot follow."""
        for values in layer.values.values():
            self._check(layer.name, values.shape, self.optimizer.state.get(values, {}))

    def _check(self, name: str, shape, state: dict) -> None:
        for key, value in state.items():
            if not isinstance(value, torch.Tensor):
                nested = value if isinstance(value, (list, tuple)) else []
                if not isinstance(value, dict) and not any(isinstance(each, torch.Tensor) for each in nested):
                    continue
                said = f"is a {type(value).__name__}"
            elif value.numel() == 1 or follows(value, shape):
                continue
            else:
                said = f"is {value.dtype} {list(value.shape)}"
            raise DataError(
                f"'{key}' of {self.title} for '{name}' cannot follow entries: it {said}, the values are {list(shape)}; "
                "take an optimizer whose state has a floating number for each value"
            )

    def _first_state(self, values: torch.nn.Parameter) -> dict:
        """What the first step makes for a parameter, tried out on another of its shape; empty where that fails.

        An optimizer that leads others is not tried out: it would have them make a step.
        """
        if any(isinstance(held, torch.optim.Optimizer) for held in vars(self.optimizer).values()):
            return {}
        trial = copy.copy(self.optimizer)
        group = next(g for g in self.optimizer.param_groups if any(each is values for each in g["params"]))
        like = torch.nn.Parameter(torch.zeros_like(values))
        like.grad = torch.zeros_like(values)
        trial.__dict__.update(
            param_groups=[{**group, "params": [like]}],
            state=collections.defaultdict(dict),
            _optimizer_step_pre_hooks=collections.OrderedDict(),
            _optimizer_step_post_hooks=collections.OrderedDict(),
        )
        try:
            type(trial).step(trial)
        except Exception:  # it is looked at again before each update
            return {}
        return trial.state[like]

    def held_for(self, layer) -> list[torch.Tensor]:
        """What `moved` has written for a weight, each where it lies."""
        states = [(values, self.optimizer.state.get(values, {})) for values in layer.values.values()]
        return [held for values, state in states for held in state.values() if follows(held, values.shape)]

    def moved(self, move) -> list:
        """Calls that write the next state of a weight, each made and ready."""
        states = {name: self.optimizer.state.get(values, {}) for name, values in move.layer.values.items()}
        keys = dict.fromkeys(key for state in states.values() for key in state)
        writes = []
        for key in keys:
            arrays = {name: state.get(key) for name, state in states.items()}
            shapes = {name: values.shape for name, values in move.layer.values.items()}
            if not any(a is not None and follows(a, shapes[n]) for n, a in arrays.items()):
                continue
            like = next(a for a in arrays.values() if a is not None)
            given = {n: like.new_zeros(shapes[n]) if a is None else whole(a) for n, a in arrays.items()}
            new = move.along_new(given) if str(key).startswith("master") else move.along(given)
            writes += [_write(states[n], key, shared_out(new[n], a)) for n, a in arrays.items() if a is not None]
        return writes

    def exchange(self, old: list[torch.nn.Parameter], new: list[torch.nn.Parameter], states: list[dict]) -> None:
        """Train other parameters in place of some, with these states."""
        for group in self.optimizer.param_groups:
            numbers = [n for n, each in enumerate(group["params"]) if any(each is o for o in old)]
            if numbers:
                kept = [each for each in group["params"] if not any(each is o for o in old)]
                group["params"][:] = [*kept[: numbers[0]], *new, *kept[numbers[0] :]]
        for parameter in old:
            self.optimizer.state.pop(parameter, None)
        for parameter, state in zip(new, states):
            if state:
                self.optimizer.state[parameter] = state


def follows(value, shape) -> bool:
    """Is this a number for each value?"""
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.ndim and value.shape == shape


def _write(state: dict, key, new: torch.Tensor):
    def write():
        held = state[key]
        if held.shape == new.shape:
            held.copy_(new)
        else:
            state[key] = new

    return write


def packed_states(follower: OptimizerFollower, name: str, dense: torch.nn.Parameter, shape, pattern) -> list[dict]:
    """The state of a dense parameter of this shape at the entries of a pattern, for each of its parts.

    The pattern is of that shape, or of the matrix that a format of two axes means.
    """
    state = follower.optimizer.state.get(dense, {})
    follower._check(name, torch.Size(shape), state)
    states: list[dict] = [{} for _ in pattern.parts]
    for key, value in state.items():
        gathered = [value] * len(states)
        if follows(value, torch.Size(shape)):
            found = pattern.gather(value.reshape(pattern.shape))
            gathered = list(found.values()) if isinstance(found, dict) else [found]
        for each, tensor in zip(states, gathered):
            each[key] = tensor.clone() if isinstance(tensor, torch.Tensor) else copy.copy(tensor)
    return states


def dense_state(follower: OptimizerFollower, layer) -> dict:
    """The state of a packed weight as that of the dense one, 0 where nothing is stored."""
    packed = layer.weight.packed()
    states = {name: follower.optimizer.state.get(values, {}) for name, values in layer.values.items()}
    dense = {}
    for key in dict.fromkeys(key for state in states.values() for key in state):
        found = {name: state[key] for name, state in states.items() if key in state}
        first = next(iter(found.values()))
        values = {name: part for name, part in packed.values_by_part.items()}
        if all(follows(value, values[name].shape) for name, value in found.items()):
            given = {n: whole(found[n]) if n in found else torch.zeros_like(part) for n, part in values.items()}
            dense[key] = type(packed)(packed.pattern, given).to_dense().reshape(layer.weight.shape)
        else:
            dense[key] = first.clone() if isinstance(first, torch.Tensor) and math.prod(first.shape) == 1 else first
    return dense

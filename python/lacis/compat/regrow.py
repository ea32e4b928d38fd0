# SPDX-License-Identifier: Apache-2.0
"""Blocks that change places while a model trains: pytorch_block_sparse's optimizer of patterns."""

from __future__ import annotations

import math

import torch

from ..errors import DataError, ScheduleError
from .blocks import block_matrix, grid_of, places_of

DISTRIBUTIONS = ("uniform", "gaussian")
_KEYS = ("lr", "method", "new_coefficients_scale", "new_coefficients_distribution")


class SparseOptimizer(torch.optim.Optimizer):
    """Each `step()` moves the share `lr` of a weight's blocks, those of least norm, to places that were free before.

    `objects` are packed weights in Bsr, as `sparse_objects(model)` finds them, or groups of them with options of their
    own. New values are drawn from [-scale·std, scale·std] ("uniform"), or are normal with scale·mean and scale·std
    ("gaussian"), mean and std being those of the present values. The state that attached optimizers keep for the
    values follows by block, and is 0 for the new ones; the gradient becomes None.

    Raises `ScheduleError` for other objects, options and methods, for one object twice, and in `step`, before anything
    changes, where no attached optimizer has the values, or one has a state that cannot follow.

    >>> from lacis.compat.pytorch_block_sparse import BlockSparseLinear
    >>> model = torch.nn.Sequential(BlockSparseLinear(128, 128, density=0.5, target="eager"))
    >>> before = model[0].weight.packed().pattern.to_mask()
    >>> SparseOptimizer(SparseOptimizer.sparse_objects(model), lr=0.25).step()
    >>> int((model[0].weight.packed().pattern.to_mask() != before).sum()) // 1024
    4

    After pytorch_block_sparse (Lagunas, 2020); dropping by magnitude and growing at random is SET (Mocanu, 2018).
    """

    def __init__(
        self,
        sparse_objects,
        lr: float = 0.1,
        method: str = "magnitude",
        new_coefficients_scale: float = 0.1,
        new_coefficients_distribution: str = "uniform",
    ):
        objects = [sparse_objects] if isinstance(sparse_objects, torch.nn.Module) else list(sparse_objects)
        groups = objects if objects and isinstance(objects[0], dict) else [{"sparse_objects": objects}]
        self.attached_optimizers: list[torch.optim.Optimizer] = []
        given = (lr, method, new_coefficients_scale, new_coefficients_distribution)
        super().__init__(groups, dict(zip(_KEYS, given)))

    @staticmethod
    def sparse_objects(model) -> list[torch.nn.Module]:
        """The packed weights of a model that are stored in blocks."""
        weights = [m for m in model.modules() if getattr(m, "is_packed_weight", False)]
        return [weight for weight in weights if len(getattr(weight.format, "tile", ())) == 2]

    def attach_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Let the state of an optimizer of the values follow."""
        if not any(each is optimizer for each in self.attached_optimizers):
            self.attached_optimizers.append(optimizer)

    def add_param_group(self, param_group: dict) -> None:
        if unknown := set(param_group) - {"sparse_objects", *_KEYS}:
            raise ScheduleError(f"SparseOptimizer has no option {sorted(unknown)}; it has {', '.join(_KEYS)}")
        group = {**self.defaults, **param_group}
        objects = group["sparse_objects"]
        group["sparse_objects"] = objects = [objects] if isinstance(objects, torch.nn.Module) else list(objects)
        for each in objects:
            if not getattr(each, "is_packed_weight", False):
                raise ScheduleError(f"SparseOptimizer takes packed weights, not a {type(each).__name__}")
            places_of(each.packed())
        _check_options(group)
        held = [id(each) for known in self.param_groups for each in known["sparse_objects"]]
        numbers = [id(each) for each in objects]
        if len({*held, *numbers}) < len(held) + len(numbers):
            raise ScheduleError("SparseOptimizer: a weight appears more than once")
        group["params"] = [each.values for each in objects]
        self.param_groups.append(group)

    def state_dict(self) -> dict:
        """The options of the groups; the weights themselves are the model's."""
        state = super().state_dict()
        return {**state, "param_groups": [_without_objects(group) for group in state["param_groups"]]}

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over the options of groups of as many weights."""
        held = [group["sparse_objects"] for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, objects in zip(self.param_groups, held):
            group["sparse_objects"] = objects

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Nothing: gradients belong to the optimizer of the values."""

    @torch.no_grad()
    def step(self, closure=None):
        """Change the patterns once. Raises as the class says, before anything is changed."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        due = [(each, group) for group in self.param_groups if group["lr"] for each in group["sparse_objects"]]
        states = [self._states(weight.values) for weight, _ in due]
        for (weight, group), tensors in zip(due, states):
            source = _move(weight, group)
            for state, key in tensors:
                state[key].copy_(_followed(state[key], source))
        return loss

    def _states(self, values) -> list[tuple[dict, str]]:
        """Where attached optimizers keep a number for each value."""
        holders = [
            optimizer
            for optimizer in self.attached_optimizers
            if any(p is values for group in optimizer.param_groups for p in group["params"])
        ]
        if self.attached_optimizers and not holders:
            raise ScheduleError(
                f"no attached optimizer has the values {list(values.shape)} of a weight; make it of model.parameters()"
            )
        found = []
        for optimizer in holders:
            state = optimizer.state.get(values, {})
            for key, tensor in state.items():
                if not isinstance(tensor, torch.Tensor) or tensor.numel() <= 1:
                    continue
                if tensor.shape != values.shape or not tensor.is_floating_point():
                    raise ScheduleError(
                        f"the state '{key}' of {type(optimizer).__name__} has shape {list(tensor.shape)} and "
                        f"{tensor.dtype}, which says nothing of single blocks {list(values.shape)}: it cannot follow"
                    )
                found.append((state, key))
        return found


def _without_objects(group: dict) -> dict:
    return {name: value for name, value in group.items() if name != "sparse_objects"}


def _check_options(group: dict) -> None:
    if not isinstance(group["lr"], (int, float)) or not 0 <= group["lr"] <= 1:
        raise ScheduleError(f"SparseOptimizer: lr is the share of blocks that move, from 0 to 1, not {group['lr']!r}")
    if group["method"] != "magnitude":
        raise ScheduleError(f"SparseOptimizer: the method is 'magnitude', not {group['method']!r}")
    if group["new_coefficients_distribution"] not in DISTRIBUTIONS:
        raise ScheduleError(
            f"SparseOptimizer: new coefficients are {' or '.join(map(repr, DISTRIBUTIONS))}, "
            f"not {group['new_coefficients_distribution']!r}"
        )
    if not group["new_coefficients_scale"] >= 0:
        raise DataError(f"SparseOptimizer: a scale is at least 0, not {group['new_coefficients_scale']!r}")


def _move(weight, group: dict) -> torch.Tensor:
    """Move blocks of one weight; the old block of each new one, -1 where it is new."""
    packed = weight.packed()
    values, block, places = packed.values.detach(), packed.format.tile, places_of(packed)
    norms = values.double().reshape(len(values), math.prod(block)).norm(dim=1)
    norms = torch.where(norms.isnan(), torch.inf, norms)
    taken = torch.zeros(math.prod(grid_of(packed.shape, block)), dtype=torch.bool, device=values.device)
    taken[places] = True
    free = (~taken).nonzero().reshape(-1)
    count = min(int(len(values) * group["lr"]), len(free))
    source = torch.arange(len(values), device=values.device)
    worst = torch.sort(norms, stable=True).indices[:count]
    places, source = places.clone(), source.clone()
    places[worst] = free[torch.randperm(len(free), device=free.device)[:count]]
    source[worst] = -1
    places, order = places.sort()
    source = source[order]
    made = torch.where((source < 0)[:, None, None], _drawn(values, group), values[source.clamp(min=0)])
    weight.set_packed(block_matrix(packed.shape, block, places, made))
    return source


def _drawn(values: torch.Tensor, group: dict) -> torch.Tensor:
    scale = group["new_coefficients_scale"]
    std = values.std() if values.numel() > 1 else values.new_zeros(())
    if group["new_coefficients_distribution"] == "gaussian":
        return torch.randn_like(values) * (std * scale) + values.mean() * scale
    return (torch.rand_like(values) * 2 - 1) * (std * scale)


def _followed(state: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return torch.where((source < 0)[:, None, None], 0, state[source.clamp(min=0)])

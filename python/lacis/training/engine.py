# SPDX-License-Identifier: Apache-2.0
"""The engine of schedules whose patterns may change: `attach`, `resparsify`, and states that follow a restore."""

from __future__ import annotations

import warnings

import torch

from ..errors import DataError, ScheduleError, user_location
from ..nn.sharded import is_sharded
from ..runtime.engine import ModelEngine
from ..schedule import Site
from ..sparsifiers import as_sparsifier
from .calibrate import calibrate
from .layer import Layer
from .master import MasterLayer
from .module import ModuleFollower
from .optimizer import OptimizerFollower, dense_state, packed_states
from .updates import Updates


class Engine(ModelEngine):
    """What `Schedule.attach` and `Handle.resparsify` call, too. See `lacis.schedule.schedule.Engine`."""

    _updates: Updates | None = None

    def attach(self, optimizer, followers: tuple, group, resize: bool) -> Updates:
        self._require("attach")
        given = [_follower(each) for each in (optimizer, *followers)]
        if not isinstance(given[0], OptimizerFollower):
            raise ScheduleError(f"attach: an optimizer comes first, not a {type(optimizer).__name__}")
        group = _group_of(group)
        layers = [_layer(each) for each in self._built]
        for layer in layers:
            _require_plain(layer, group)
        optimizers = [each for each in given if isinstance(each, OptimizerFollower)]
        exchanges = [_exchange(each, layer) for each in optimizers for layer in layers]
        for each in given:
            each.require_follows(layers)
        updates = Updates(self.model, layers, given, group, resize)
        updates.require_equal()
        for layer in layers:
            layer.attached([each.weights[layer.name] for each in given if isinstance(each, ModuleFollower)])
        for layer in layers if not resize or group is not None else ():
            if layer.policy is not None:
                layer.keep_room()
        for exchange in filter(None, exchanges):
            exchange()
        _warn_of_untrained(layers, optimizers)
        if self._updates is not None:
            self._updates.end("attach() was called again")
        self._updates = updates
        return updates

    def calibrate(self, schedule, batches, blocks: str | None) -> None:
        calibrate(schedule, batches, blocks)

    def resparsify(self, site: Site, sparsifier) -> None:
        updates, layer = self._updates_of(site)
        updates.change([(layer, layer.bound(as_sparsifier(sparsifier)))], updates.count)

    def fit(self, site: Site) -> None:
        updates, layer = self._updates_of(site)
        updates.fit(layer)

    def _updates_of(self, site: Site) -> tuple[Updates, Layer]:
        """The updates that change a weight, those of `attach` where it is attached."""
        built = self._of(site)
        updates = self._updates
        if updates is None:
            updates = Updates(self.model, [_layer(built)], [], None, True)
        return updates, next(each for each in updates._layers if each.built is built)

    def restore(self):
        updates = self._updates
        if updates is None:
            return super().restore()
        self._require("restore")
        optimizers = [each for each in updates.followers if isinstance(each, OptimizerFollower)]
        states = [[(each, layer, dense_state(each, layer)) for layer in updates._layers] for each in optimizers]
        model = super().restore()
        for each, layer, state in (found for of_one in states for found in of_one):
            if any(id(values) in each.held() for values in layer.values.values()):
                each.exchange(list(layer.values.values()), [layer.built.captured.parameter], [state])
        updates.end("the model was restored")
        self._updates = None
        if not updates.count and updates._policies:
            message = "restore: the updates were attached, and step() was never called, so no pattern changed"
            warnings.warn_explicit(message, UserWarning, *(user_location() or ("lacis", 1)))
        return model


def _warn_of_untrained(layers, optimizers) -> None:
    """A `UserWarning` for the first weight with a policy and a gradient that none of the optimizers trains."""
    held = set().union(*(each.held() for each in optimizers))
    for layer in layers:
        trained = [values for values in layer.values.values() if values.requires_grad]
        if layer.policy is not None and trained and not any(id(values) in held for values in trained):
            message = (
                f"attach: no optimizer that was given trains '{layer.name}', whose pattern changes, so none has state "
                "that follows; give the one that was made of this model's parameters()"
            )
            warnings.warn_explicit(message, UserWarning, *(user_location() or ("lacis", 1)))
            return


def _layer(built) -> Layer:
    return MasterLayer(built) if built.forwards else Layer(built)


def _follower(given):
    if isinstance(given, torch.optim.Optimizer):
        return OptimizerFollower(given)
    if isinstance(given, torch.nn.Module):
        return ModuleFollower(given)
    raise ScheduleError(f"attach: optimizers and modules can follow, not a {type(given).__name__}")


def _group_of(group):
    """The group whose ranks train one model; None where this process trains alone. Raises `ScheduleError`."""
    distributed = torch.distributed
    ranks = distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
    if isinstance(group, str) and group != "self":
        raise ScheduleError(f"attach: group is a torch.distributed group or 'self', not {group!r}")
    if group is None and ranks > 1:
        raise ScheduleError(
            f"attach: there are {ranks} ranks; say group=torch.distributed.group.WORLD where they train one model, so "
            "that they choose alike, or group='self' where each trains its own"
        )
    return None if group == "self" or ranks < 2 else group


def _require_plain(layer: Layer, group) -> None:
    for values in layer.values.values():
        if is_sharded(values) and group is None:
            raise DataError(
                f"attach: the values of '{layer.name}' are cut over ranks, which train one model then; say "
                "group=torch.distributed.group.WORLD"
            )
        if type(values) is not torch.nn.Parameter and type(values.data) is not torch.Tensor and not is_sharded(values):
            raise DataError(
                f"attach: the values of '{layer.name}' are a {type(values).__name__}; patterns change of plain ones, "
                "under DistributedDataParallel and fully_shard (FSDP2) too"
            )
    if any(part.repeats for part in layer.weight.packed().pattern.parts.values()):
        raise DataError(f"attach: '{layer.name}' has two entries at one place, which no policy could tell apart")


def _exchange(follower: OptimizerFollower, layer: Layer):
    """The call that has an optimizer made before `build` train the packed values; None where it does not hold them."""
    dense = layer.built.captured.parameter
    if isinstance(layer, MasterLayer) or id(dense) not in follower.held():
        return None
    pattern = layer.weight.packed().pattern
    states = packed_states(follower, layer.name, dense, tuple(layer.weight.shape), pattern)
    return lambda: follower.exchange([dense], list(layer.values.values()), states)

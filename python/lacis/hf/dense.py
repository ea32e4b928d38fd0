# SPDX-License-Identifier: Apache-2.0
"""Packs a dense checkpoint while transformers loads it, one weight at a time."""

from __future__ import annotations

import types

import torch
from transformers.core_model_loading import ConversionOps

from ..capture import Captured, capture_site
from ..errors import DataError
from ..runtime.build import build_parameter
from ..runtime.swap import as_a_whole, put
from .layers import keeps_no


class DenseSites:
    """What a schedule says of its parameters, apart from its model."""

    def __init__(self, schedule):
        if schedule.edges:
            raise DataError(f"'{schedule.edges[0].name}' is an activation; what a checkpoint holds are parameters")
        if not schedule.sites:
            raise DataError("the schedule says nothing of any parameter")
        for site in schedule.sites:
            if not site.is_packed:
                raise DataError(f"'{site.name}.grad' is a gradient; what a checkpoint holds are parameters")
        self._sites = schedule.sites
        said = {name: getattr(schedule, name) for name in ("target", "deterministic", "strict")}
        self._options = types.SimpleNamespace(**said)
        self._waiting: dict[str, Captured] = {}

    def find(self, model) -> None:
        """Look for the parameters in the model that is about to be loaded. Raises `ScheduleError` by name."""
        captured = [capture_site(model, site) for site in self._sites]
        for each in captured:
            if any(owner.operator.in_place for owner in each.owners):
                raise DataError(keeps_no(each.name))
        self._waiting = {name: each for each in captured for name in each.site.names}

    def wants(self, name: str) -> bool:
        return name in self._waiting

    def pack(self, model, name: str, dense: torch.Tensor) -> None:
        """Put the packed layers of a parameter into the model. Raises with the parameter's name."""
        captured = self._waiting[name]
        was = captured.parameter
        if dense.shape != was.shape:
            raise DataError(f"'{name}' is {list(dense.shape)} in the checkpoint, {list(was.shape)} in the model")
        built = build_parameter(captured, torch.nn.Parameter(dense, was.requires_grad), self._options)

        def change(undo):
            for owner, (_, sparse) in zip(captured.owners, built.modules):
                for path in owner.paths:
                    put(model, path, sparse, undo)

        as_a_whole(change)
        for each in captured.site.names:
            del self._waiting[each]

    def require_all(self) -> None:
        """Raise `DataError` where a parameter did not come."""
        if self._waiting:
            raise DataError(f"the checkpoint has no {', '.join(map(repr, self._waiting))}")


class PackWhileLoading(ConversionOps):
    """What transformers calls with each tensor that is to be packed."""

    def __init__(self, sites: DenseSites):
        self._sites = sites

    def convert(self, input_dict, *args, full_layer_name=None, model=None, missing_keys=None, **kwargs) -> dict:
        (dense,) = input_dict.values()
        dense = dense[0] if isinstance(dense, list) else dense
        self._sites.pack(model, full_layer_name, dense)
        if missing_keys is not None:
            missing_keys.discard(full_layer_name)
        return {}

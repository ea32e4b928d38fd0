# SPDX-License-Identifier: Apache-2.0
"""Shows sparsifiers of activations what passes their edges in the dense model."""

from __future__ import annotations

import dataclasses
import re

import torch

from ..errors import DataError, ScheduleError


class SeenEdges:
    """The edges of a schedule whose sparsifiers follow from values that pass."""

    def __init__(self, schedule):
        self._model = schedule.model
        self._sites = [site for site in schedule.edges if getattr(site.sparsifier, "sees_values", False)]
        for site in self._sites:
            if site.name.endswith(".grad"):
                raise ScheduleError(
                    f"calibrate: no gradient passes '{site.name}' then; take a sparsifier that needs no batches",
                    location=site.location,
                )
        self._seen: dict[str, list[torch.Tensor]] = {site.name: [] for site in self._sites}

    def __bool__(self) -> bool:
        return bool(self._sites)

    def watch(self) -> list:
        """Hook the edges; answers the hooks' handles."""
        return [self._hook(site) for site in self._sites]

    def _hook(self, site):
        path, _, end = site.name.partition(":")
        module, seen = self._model.get_submodule(path), self._seen[site.name]

        def note(tensor):
            if not isinstance(tensor, torch.Tensor):
                raise ScheduleError(
                    f"calibrate: a {type(tensor).__name__} passes '{site.name}', which is no tensor",
                    location=site.location,
                )
            seen.append(site.sparsifier.seen(tensor))

        if end == "out":
            return module.register_forward_hook(lambda module, args, output: note(output))
        number = int(re.match(r"in(\d+)", end)[1])
        return module.register_forward_pre_hook(lambda module, args: note(args[number] if number < len(args) else None))

    def settle(self) -> None:
        """Have the steps say what was found. Raises `DataError` for an edge that nothing passed."""
        for name, seen in self._seen.items():
            if not sum(map(len, seen)):
                raise DataError(f"calibrate: nothing passed '{name}'; its module must run in the batches")
        for site in self._sites:
            first = next(step for step in site.steps if step.mnemonic == "sparsify")
            settled = site.sparsifier.settled(self._seen[site.name])
            site.steps[:] = [
                dataclasses.replace(step, sparsifier=settled) if step is first else step for step in site.steps
            ]

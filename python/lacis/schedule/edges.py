# SPDX-License-Identifier: Apache-2.0
"""Handles of activations and of the gradients that pass through the same edges of a model."""

from __future__ import annotations

import dataclasses

from ..errors import FormatError, ScheduleError
from ..formats import Sum
from ..sparsifiers import Calibrated
from .handle import GradientHandle
from .site import Site
from .verbs import SiteVerbs


class Activation(SiteVerbs):
    """What a module answers (`path:out`) or takes (`path:in0`): packed as it passes, for the next product.

    Its leading axes are one, `b`, and its last one is `j`; formats and sparsifiers see this matrix. Steps of loops are
    those of the products that read it: `y[b, i] = sum_j x[b, j] * w[i, j]`.

    A second `sparsify` behind a format chooses among what the first one kept, as STen's external sparsifier does after
    the inline one; products read the last format.
    """

    def __init__(self, schedule, name: str):
        self._schedule = schedule
        self.name = name

    @property
    def site(self) -> Site:
        """Where its verbs are recorded."""
        return self._schedule.edge(self.name)

    @property
    def grad(self) -> ActivationGradient:
        """The gradient that passes here on its way back."""
        return ActivationGradient(self._schedule, self.name)

    @property
    def kernel(self):
        """The kernel of the first product that ran on it."""
        return next(iter(self.kernels.values()))

    @property
    def kernels(self) -> dict:
        """The kernels that ran on it, by expression; raises `ScheduleError` before the first."""
        return self._schedule.engine.edge_kernels(self.site)

    def _trial(self, step) -> None:
        super()._trial(step)
        sparsifier = getattr(step, "sparsifier", None)
        if getattr(step, "master", None) is not None:
            raise ScheduleError(
                f"{step.mnemonic}: '{self.name}' is made in each call, so there is no Parameter that master= could "
                "keep; leave it out",
                location=step.location,
            )
        if sparsifier is not None and (sparsifier.due() is not None or isinstance(sparsifier, Calibrated)):
            raise ScheduleError(
                f"{step.mnemonic}: '{self.name}' is chosen anew in each call, so {type(sparsifier).__name__}, with "
                "steps or batches of its own, belongs to a parameter; take Magnitude, Random, NM or Threshold",
                location=step.location,
            )

    @property
    def format(self):
        """The format in which products read it."""
        return self.site.stages[-1].format()

    def _stage(self, step) -> Site:
        stages = self.site.stages
        begins = len(dataclasses.replace(self.site, steps=[*self.site.steps, step]).stages) > len(stages)
        return dataclasses.replace(self.site, steps=[]) if begins else stages[-1]

    def __repr__(self) -> str:
        return f's["{self.name}"]' + "".join(f".{step.describe()}" for step in self.steps)


class ActivationGradient(Activation):
    """The gradient that arrives at a module (`path:out`) or leaves it (`path:in0`), packed for the next product.

    Steps of loops are those of the kernel that makes it: of a layer's input, where the layer's weight is packed.
    """

    def __init__(self, schedule, edge: str):
        super().__init__(schedule, f"{edge}.grad")
        self._edge = edge

    @property
    def grad(self):
        raise ScheduleError(f"'{self.name}': gradients of gradients have no handle")

    @property
    def steps(self) -> tuple:
        return (*self.site.steps, *(self._made_by().steps if self._has_maker() else ()))

    @property
    def kernel(self):
        """The kernel that makes it, where a packed weight does; else the first that ran on it."""
        return self._made_by().kernel if self._has_maker() and not self.site.steps else super().kernel

    def _trial(self, step) -> None:
        if not step.of_loops:
            super()._trial(step)
        elif self._has_maker():
            self._made_by()._trial(step)
        else:
            raise ScheduleError(
                f"{step.mnemonic}: '{self.name}': no kernel of its own makes this gradient; steps of loops belong to "
                "the input of a layer, as s['path:in0'].grad",
                location=step.location,
            )

    def _take(self, step) -> None:
        self._trial(step)
        if step.of_loops:
            self._made_by()._take(step)
        else:
            self.site.record(step)

    def _has_maker(self) -> bool:
        path, _, edge = self._edge.partition(":")
        return edge == "in0" and f"{path}.weight" in self._schedule.names.parameters

    def _made_by(self) -> GradientHandle:
        site = self._schedule._site(f"{self._edge.partition(':')[0]}.weight")
        return GradientHandle(self._schedule, site, self._edge, self.name)


def check_edge(site: Site, packed) -> None:
    """Raise, with the user's line, unless what is recorded on an edge can be built.

    `packed` are the names of all that the schedule packs.
    """
    path, _, edge = site.name.partition(":")
    others = {"in0": [f"{path}.weight"], "out.grad": [f"{path}.weight", f"{path}:in0"]}
    for other in others.get(edge, []):
        if other in packed:
            raise ScheduleError(
                f"'{site.name}' is packed and so is '{other}'; one operand of a product may be, leave the other dense",
                location=site.location,
            )
    for stage in site.stages:
        _check_stage(stage)


def _check_stage(site: Site) -> None:
    format = site.format()
    format.require_code("pack")
    if site.sparsifier is not None and not site.sparsifier.is_settled:
        raise ScheduleError(
            f"'{site.name}': {type(site.sparsifier).__name__} has not seen what passes; call s.calibrate(batches) "
            "before build()",
            location=site.location,
        )
    if isinstance(format, Sum):
        raise FormatError(
            f"'{site.name}': parts of a sum share entries by their values, which has no code for an activation; give "
            "it one format",
            location=site.location,
        )


def grows(format, site: Site) -> str | None:
    """Why the number of stored values is not known from the shape; None where it is."""
    if isinstance(format, Sum):
        return "parts of a sum share entries by their values"
    sparsifier, levels = site.sparsifier, format.prefix
    for n, level in enumerate(levels):
        extent = level.extent
        if extent.covers or extent.follows or extent.capacity is not None:
            continue
        if level.coordinate.skips or level.coordinate.implicit:
            return f"'{level.kind}' takes positions without an entry, too"
        digits = ", ".join(digit.text(format.axes) for digit in level.digits)
        if extent.pads:
            return f"'{digits}' is as wide as its longest fibre, give it a width"
        if any(not below.extent.follows for below in levels[n + 1 :]):
            return f"how many coordinates '{digits}' has"
        if sparsifier is None or not sparsifier.counts:
            name = "no sparsifier" if sparsifier is None else f"'{type(sparsifier).__name__}'"
            return f"{name} says how many entries there are, take Magnitude, Random or NM"
        bound = sparsifier if site.block_size is None else sparsifier.with_block(site.block_size)
        if bool(format.tile) != (bound.needs_block or bool(getattr(bound, "block", None))):
            return "stored blocks go with a sparsifier of blocks, take BlockMagnitude or BlockRandom"
    return None

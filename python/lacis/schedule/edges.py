# SPDX-License-Identifier: Apache-2.0
"""Handles of activations and of the gradients that pass through the same edges of a model."""

from __future__ import annotations

from ..errors import FormatError, ScheduleError
from ..formats import Sum
from ..sparsifiers import Calibrated
from .handle import GradientHandle, SiteVerbs
from .site import Site


class Activation(SiteVerbs):
    """What a module answers (`path:out`) or takes (`path:in0`): packed as it passes, for the next product.

    Its leading axes are one, `b`, and its last one is `j`; formats and sparsifiers see this matrix. Steps of loops are
    those of the products that read it: `y[b, i] = sum_j x[b, j] * w[i, j]`.
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
        if sparsifier is not None and (sparsifier.due() is not None or isinstance(sparsifier, Calibrated)):
            raise ScheduleError(
                f"{step.mnemonic}: '{self.name}' is chosen anew in each call, so {type(sparsifier).__name__}, with "
                "steps or batches of its own, belongs to a parameter; take Magnitude, Random or NM",
                location=step.location,
            )

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

    `packed` are the names of all that the schedule packs. How many values the format stores must follow from the shape
    alone, so that nothing waits for the device to count.
    """
    path, _, edge = site.name.partition(":")
    others = {"in0": [f"{path}.weight"], "out.grad": [f"{path}.weight", f"{path}:in0"]}
    for other in others.get(edge, []):
        if other in packed:
            raise ScheduleError(
                f"'{site.name}' is packed and so is '{other}'; one operand of a product may be, leave the other dense",
                location=site.location,
            )
    format = site.format()
    format.require_code("pack")
    reason = "parts of a sum share entries by their values" if isinstance(format, Sum) else _grows(format, site)
    if reason:
        raise FormatError(
            f"'{site.name}': the size of '{format}' depends on the values: {reason}; an activation needs a format "
            "whose size follows from its shape",
            location=site.location,
        )


def _grows(format, site: Site) -> str | None:
    """Why the number of stored values is not known from the shape; None where it is."""
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
        if bool(format.tile) != sparsifier.needs_block:
            return "stored blocks go with a sparsifier of blocks, take BlockMagnitude or BlockRandom"
    return None

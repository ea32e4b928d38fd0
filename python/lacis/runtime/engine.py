# SPDX-License-Identifier: Apache-2.0
"""Stands behind a schedule: builds it, gives the model back, reports."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ScheduleError
from ..nn.attention import Door
from ..nn.doors import close_doors, make_doors, open_doors
from ..nn.row_gradient import RowGradient, make_row_gradients
from ..schedule import Schedule, Site
from .build import Built, build_model, compile_model
from .checkpoint import Checkpoint, Stored, require_parameters
from .choice import choose_dense, tokens_seen
from .compile import Kernel
from .edges import Edge, make_edges, require_called
from .example import run_example
from .gradients import Family
from .optimizers import warn_of_optimizers
from .progress import Progress
from .report import Report, measure
from .swap import Undo, as_a_whole, register_edges, swap_in, swap_out


_STATE = ("_built", "_edges", "_hooks", "_doors", "_rows")  # what an engine knows of its model


class Kernels(Mapping):
    """The kernels of a layer by role; those of gradients are compiled when first looked at.

    `grad_input` is that of the layer's input, `grad_values` that of the values, `ell.grad_values` of a part's.
    """

    def __init__(self, family: Family):
        self._family = family
        self._slots: dict[str, str | None] = {"forward": None}
        for slot in family.slots:
            self._slots[slot.replace("values", "grad_values") if slot.endswith("values") else "grad_input"] = slot

    def __getitem__(self, role: str) -> Kernel:
        slot = self._slots[role]
        return self._family.gradient(slot).kernel if slot else self._family.kernel

    def __iter__(self):
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __repr__(self) -> str:
        return f"Kernels({', '.join(self)})"

    @property
    def compiled(self) -> list[Family]:
        """Those that are compiled already, with those that autocast asked for."""
        return self._family.compiled()


class ModelEngine:
    """What `Schedule.build`, `.restore` and `.report` call. See `lacis.schedule.schedule.Engine`."""

    def __init__(self, model):
        self.model = model
        self._built: list[Built] | None = None
        self._edges: dict[str, Edge] = {}
        self._hooks: list = []
        self._doors: list[Door] = []
        self._rows: list[RowGradient] = []

    @property
    def built(self) -> bool:
        return self._built is not None

    def build(self, schedule: Schedule, args: tuple, kwargs: dict):
        with Progress("lacis build") as progress:
            edges = make_edges(self.model, schedule)
            doors = make_doors(self.model, schedule)
            rows = make_row_gradients(self.model, schedule)
            built = build_model(self.model, schedule, progress)
        require_called(self.model, edges.values(), args, kwargs)
        if schedule.allow_dense:
            choose_dense(built, tokens_seen(self.model, built, args, kwargs))
        warn_of_optimizers(built)
        return as_a_whole(lambda undo: self._put_in(built, edges, doors, rows, undo, args, kwargs))

    def build_from(self, schedule: Schedule, given, device):
        require_parameters(schedule)
        stored = Stored(self.model, schedule, Checkpoint(given, device))

        def change(undo: Undo):
            stored.fill(schedule, undo)
            with Progress("lacis build") as progress:
                rows = make_row_gradients(self.model, schedule)
                built = build_model(self.model, schedule, progress, stored)
            return self._put_in(built, {}, [], rows, undo, (), {})

        return as_a_whole(change)

    def _put_in(self, built: list[Built], edges: dict[str, Edge], doors, rows, undo: Undo, args, kwargs):
        swap_in(self.model, built, undo)
        for each in rows:
            each.put_in(undo)
        open_doors(doors, undo)
        if doors and (args or kwargs):
            run_example(self.model, {}, args, kwargs)
            for door in doors:
                door.require_called()
        undo.will_set(self.__dict__, *_STATE)
        self._hooks = register_edges(self.model, edges.values(), undo)
        self._edges, self._built, self._doors, self._rows = edges, built, doors, rows
        return self.model

    def compile_only(self, schedule: Schedule) -> dict[str, Kernels]:
        if schedule.target == "eager":
            raise ScheduleError("compile_only: target 'eager' has no kernels; name another in create_schedule")
        with Progress("lacis compile") as progress:
            families = compile_model(self.model, schedule, progress)
        return {name: Kernels(family) for name, family in families.items()}

    def restore(self):
        self._require("restore")
        return as_a_whole(self._take_out)

    def _take_out(self, undo: Undo):
        swap_out(self.model, self._built, undo)
        undo.will_set(self.__dict__, *_STATE)
        hooks, self._hooks = self._hooks, []
        close_doors(self._doors, undo)
        for each in self._rows:
            each.take_out(undo)
        self._built, self._edges, self._doors, self._rows = None, {}, [], []
        for hook in hooks:
            if (held := hook.hooks_dict_ref()) is not None:  # the module lives
                undo.will_fill(held)
            hook.remove()
        return self.model

    def report(self, args: tuple, kwargs: dict) -> Report:
        self._require("report")
        return measure(self.model, self._built, [*self._edges.values(), *self._doors, *self._rows], args, kwargs)

    def kernels(self, site: Site) -> dict:
        each = self._of(site)
        products = each.weight._products
        if products.stacks and products.recipe.target != "eager":
            raise ScheduleError(
                f"'{site.name}' is a stack, whose matrices run one kernel from their first call on; "
                "lacis.compile('ij,bj->bi', weight[0].packed(), x) has it"
            )
        if each.kernel is None:
            raise ScheduleError(f"'{site.name}' runs torch's own operators (target 'eager'), it has no kernel")
        layers = [layer for _, layer in each.modules if layer.target != "eager"]
        return Kernels(layers[0].family())

    def attention_kernels(self, name: str):
        self._require(f"'{name}'")
        door = next((door for door in self._doors if name in door.names), None)
        if door is None:
            raise ScheduleError(f"'{name}' has no verbs, so its attention is torch's own; call sparsify on it")
        return door.kernels_of()

    def packed(self, site: Site):
        each = self._of(site)
        each.refresh()
        return each.weight.packed()

    def edge_kernels(self, site: Site) -> dict[str, Kernel]:
        self._require(f"'{site.name}'")
        kernels = self._edges[site.name].kernels if site.name in self._edges else {}
        if not kernels:
            raise ScheduleError(f"no product has run on '{site.name}' yet; run the model once")
        return dict(kernels)

    def _of(self, site: Site) -> Built:
        self._require(f"'{site.name}'")
        for each in self._built:
            if each.captured.site is site:
                return each
        raise ScheduleError(f"'{site.name}' was not scheduled when the model was built")

    def _require(self, what: str) -> None:
        if self._built is None:
            raise ScheduleError(f"{what}: the model is not built; call build() first")

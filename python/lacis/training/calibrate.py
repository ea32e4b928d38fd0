# SPDX-License-Identifier: Apache-2.0
"""Shows sparsifiers what their layers are given, and keeps what they solve until `build`."""

from __future__ import annotations

import contextlib

import torch

from ..capture import Captured, capture_site, parse_statement
from ..errors import DataError, ScheduleError
from ..patterns.mask import check_mask
from ..sparsifiers import Inputs
from .seen_edges import SeenEdges


class Calibration:
    """The sites of a schedule whose sparsifiers read inputs, on the dense model."""

    def __init__(self, schedule, edges=None):
        self.model = schedule.model
        sites = [site for site in schedule.sites if getattr(site.sparsifier, "reads_inputs", False)]
        if not sites and not edges:
            raise ScheduleError(
                "calibrate: no sparsifier of the schedule reads inputs, as Wanda and SparseGPT do, or sees what "
                "passes, as Quantile does"
            )
        self.captured = [capture_site(self.model, site) for site in sites]
        for each in self.captured:
            _require_products(each)
        self.solved: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def run(self, batches) -> None:
        """Solve all on what the dense model gives them."""
        with self._watching(self.captured) as inputs:
            for batch in batches:
                _call(self.model, batch)
        self._solve(self.captured, inputs)

    def run_blocks(self, batches, blocks: str) -> None:
        """Solve the children of a module one by one, each on what those before, solved already, give it."""
        children = self._children(blocks)
        of_child = {path: [c for c in self.captured if _lies_in(c, f"{blocks}.{path}")] for path, _ in children}
        inside = [each for found in of_child.values() for each in found]
        outside = [each.name for each in self.captured if all(each is not other for other in inside)]
        if outside:
            raise ScheduleError(f"calibrate: '{outside[0]}' is in none of the blocks of '{blocks}'")
        calls = self._first_calls(children[0][1], batches)
        for path, child in children:
            with self._watching(of_child[path]) as inputs:
                for args, kwargs in calls:
                    child(*args, **kwargs)
            self._solve(of_child[path], inputs)
            for each in of_child[path]:
                mask, tensor = self.solved[each.name]
                each.parameter.copy_(tensor * mask)
            calls = [((_first(child(*args, **kwargs)), *args[1:]), kwargs) for args, kwargs in calls]

    def _children(self, blocks: str):
        try:
            children = list(self.model.get_submodule(blocks).named_children())
        except AttributeError:
            raise ScheduleError(f"calibrate: the model has no module '{blocks}'") from None
        if not children:
            raise ScheduleError(f"calibrate: '{blocks}' has no modules in it that follow one another")
        return children

    def _first_calls(self, child, batches) -> list[tuple]:
        """What the model calls the first block with, batch by batch; it is stopped there."""
        calls = []

        def caught(module, args, kwargs):
            calls.append((args, kwargs))
            raise _Stop

        hook = child.register_forward_pre_hook(caught, with_kwargs=True)
        try:
            for batch in batches:
                with contextlib.suppress(_Stop):
                    _call(self.model, batch)
        finally:
            hook.remove()
        if not calls:
            raise DataError("calibrate: there are no batches")
        return calls

    @contextlib.contextmanager
    def _watching(self, captured: list[Captured]):
        """The inputs of layers by name, summed up while it is entered."""
        inputs = {each.name: Inputs(each.site.sparsifier.wants_gram) for each in captured}
        hooks = []
        for each in captured:
            for owner in each.owners:
                hooks.append(owner.module.register_forward_pre_hook(_adding(inputs[each.name], owner.operator)))
        try:
            yield inputs
        finally:
            for hook in hooks:
                hook.remove()

    def _solve(self, captured: list[Captured], inputs: dict[str, Inputs]) -> None:
        for each in captured:
            if not inputs[each.name].count:
                raise DataError(
                    f"calibrate: '{each.name}' was given nothing; its layer must be called in the batches, and "
                    "products with its weight, as of nn.MultiheadAttention's out_proj, are no call of it"
                )
            sparsifier, dense = each.site.sparsifier, each.parameter.detach()
            try:
                mask, tensor = sparsifier.solve(dense, inputs[each.name])
                check_mask(mask, dense)
            except DataError as error:
                raise DataError(f"'{each.name}': {error.message}") from error
            if tensor.shape != dense.shape:
                raise DataError(
                    f"'{each.name}': solve() answered a tensor {list(tensor.shape)} for {list(dense.shape)}"
                )
            self.solved[each.name] = mask, tensor.detach().clone()


class _Stop(Exception):
    """The model has come to its first block."""


@torch.no_grad()
def calibrate(schedule, batches, blocks: str | None) -> None:
    """See `Schedule.calibrate`; the model is as before afterwards."""
    edges = SeenEdges(schedule)
    calibration = Calibration(schedule, edges)
    batches = list(batches) if edges else batches
    model = schedule.model
    modes = [(module, module.training) for module in model.modules()]
    held = [(each.parameter, each.parameter.detach().clone()) for each in calibration.captured if blocks is not None]
    try:
        model.eval()
        if edges:
            _show(model, batches, edges)
        if calibration.captured:
            calibration.run(batches) if blocks is None else calibration.run_blocks(batches, blocks)
    finally:
        for parameter, values in held:
            parameter.copy_(values)
        for module, mode in modes:
            module.training = mode
    edges.settle()
    for each in calibration.captured:
        each.site.solved = calibration.solved[each.name]


def _show(model, batches, edges: SeenEdges) -> None:
    hooks = edges.watch()
    try:
        for batch in batches:
            _call(model, batch)
    finally:
        for hook in hooks:
            hook.remove()


def _require_products(captured: Captured) -> None:
    """Raise `ScheduleError` unless all owners multiply [tokens, features] by [outputs, features]."""
    for owner in captured.owners:
        if owner.operator.in_place:
            raise ScheduleError(
                f"calibrate: '{captured.name}' is multiplied by its module's own forward, and what is seen are the "
                "inputs of layers; take a sparsifier that looks at values alone, or a torch.nn.Linear for the product",
                location=captured.site.location,
            )
        if owner.operator.statement is None:
            _refuse_inputs(captured, owner.operator.name)
        (weight, x, *_), _ = parse_statement(owner.operator.statement)
        if len(weight) != 2 or len(x) != 2 or weight[1] != x[1]:
            _refuse_inputs(captured, owner.operator.name)


def _refuse_inputs(captured: Captured, operator: str):
    raise ScheduleError(
        f"calibrate: '{captured.name}' goes through {operator}, whose inputs are no rows of features; take a "
        "sparsifier that looks at values alone",
        location=captured.site.location,
    )


def _adding(inputs: Inputs, operator):
    return lambda module, args: inputs.add(operator.inputs(module, *args)[0][0])


def _lies_in(captured: Captured, path: str) -> bool:
    return any(each == path or each.startswith(f"{path}.") for owner in captured.owners for each in owner.paths)


def _call(model, batch):
    if isinstance(batch, dict):
        return model(**batch)
    return model(*batch) if isinstance(batch, (tuple, list)) else model(batch)


def _first(output):
    return output[0] if isinstance(output, (tuple, list)) else output

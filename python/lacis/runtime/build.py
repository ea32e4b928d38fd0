# SPDX-License-Identifier: Apache-2.0
"""Builds a schedule into a model: pack, compile, load, and only then swap; it happens as a whole or not at all."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os

import torch

from ..capture import Captured, capture_site
from ..errors import Error, ScheduleError
from ..formats.widths import weight_format
from ..nn import KeptGradient, Master, MasterForward, Products, Recipe, SparseModule, weight_module
from ..packing import PackedTensor, pack
from ..schedule.master import check_master
from .compile import Kernel, load_anywhere, load_kernel
from .einsum import einsum
from .gradients import Family
from .progress import Progress
from .targets import refuse_meta, resolve_target, target_anywhere

_OUT_OF_ATTENTION = torch.nn.modules.linear.NonDynamicallyQuantizableLinear  # the class of its out_proj, of no other


@dataclasses.dataclass
class Built:
    """A parameter of a built model: what it was, the packed weight, and the modules that stand in for its owners."""

    captured: Captured
    weight: torch.nn.Module
    modules: list[tuple[torch.nn.Module, SparseModule]]
    kernel: Kernel | None
    requires_grad: bool
    forwards: list[MasterForward] = dataclasses.field(default_factory=list)  # where the dense Parameter stays

    @property
    def master(self) -> Master | None:
        """What derives the packed weight from the dense one, where that stays."""
        return self.forwards[0].master if self.forwards else None

    def refresh(self) -> None:
        """Have a packed weight that follows a dense one be what that is now."""
        if self.forwards:
            self.forwards[0].refresh()

    @property
    def name(self) -> str:
        return self.captured.name


def build_model(model, schedule, progress: Progress, stored=None) -> list[Built]:
    """Everything that can fail; the model is not touched. Raises with the name of the parameter.

    `stored` has the packed weights, where a checkpoint says them; see `lacis.runtime.checkpoint`.
    """
    built = _build_sites(model, schedule, progress, stored=stored)
    _compile(built, progress)
    return built


def _build_sites(model, schedule, progress: Progress, load=load_kernel, stored=None) -> list[Built]:
    captured = [capture_site(model, site) for site in schedule.sites if site.is_packed]
    built = []
    for n, each in enumerate(captured):
        progress.show("packing", n, len(captured))
        with _about(each):
            packed = None if stored is None else stored.packed(each)
            built.append(_build_site(each, schedule, load, packed))
    return built


def compile_model(model, schedule, progress: Progress) -> dict[str, Family]:
    """The kernels that a build would make, by the name of the parameter; those of gradients where the model trains.

    Nothing is put into the model. Parameters without values stand for random ones.
    """
    built = _build_sites(model, schedule, progress, load_anywhere)
    owners = [(each, module) for each in built for _, module in each.modules if module.target != "eager"]
    jobs: dict[tuple, Built] = {}
    asked = lambda each, module: (load_anywhere, module.spec(), module.target, each.captured.parameter.device)
    for each, module in owners:
        jobs.setdefault(asked(each, module), each)
    _run(jobs, progress)
    families, jobs = {}, {}
    for each, module in owners:
        load, *request = asked(each, module)
        family = load(*request).scheduled(module.gradient_steps)
        families.setdefault(each.name, family)
        for slot in family.slots if module.training else ():
            if each.requires_grad or not slot.endswith("values"):
                jobs.setdefault((family.gradient, slot), each)
    _run(jobs, progress)
    return families


@contextlib.contextmanager
def _about(captured: Captured):
    """Give an error the parameter's name and the user's line."""
    try:
        yield
    except Error as error:
        if error.message.startswith(f"'{captured.name}'"):
            raise
        location = captured.site.location
        raise type(error)(f"'{captured.name}': {error.message}", location=location) from error


def pack_site(captured: Captured) -> PackedTensor:
    """The parameter as the site's verbs say: masked by its sparsifier, stored in its format."""
    site = captured.site
    dense = captured.parameter.detach()
    if dense.device.type == "meta":  # `compile_model` alone lets it pass
        dense = torch.randn(dense.shape, generator=torch.Generator().manual_seed(0)).to(dense.dtype)
    if len(site.axes) < dense.ndim:
        dense = dense.reshape(captured.owners[0].operator.matrix(dense.shape))
    sparsifier, mask = site.sparsifier, None
    if site.solved is not None:
        mask, dense = (tensor.to(dense.device) for tensor in site.solved)
    elif sparsifier is not None:
        if site.block_size is not None:
            sparsifier = sparsifier.with_block(site.block_size)
        mask = sparsifier(dense)
    return pack(dense, weight_format(site.format(), dense.shape), mask=mask)


def _build_site(captured: Captured, schedule, load, packed: PackedTensor | None = None) -> Built:
    location, target = captured.site.location, schedule.target
    resolve, device = resolve_target if load is load_kernel else target_anywhere, captured.parameter.device
    resolve(target, device, f"'{captured.name}'", location)
    if target == "eager":
        refuse_meta(device, f"'{captured.name}'", location)
    requires_grad, has_master = captured.parameter.requires_grad, captured.site.master is not None
    if has_master:
        check_master(captured.site)
    packed = pack_site(captured) if packed is None else packed
    weight = weight_module(packed, requires_grad and not has_master, captured.site.shape)
    _keep_gradient(captured, weight)
    modules = []
    for owner in captured.owners:
        _refuse_format(owner, weight, location)
        steps = captured.site.loop_steps
        gradients = _gradient_steps(captured.site, owner, weight)
        title = owner.name if owner.operator.in_place else owner.paths[0]
        known = (steps, location, gradients, schedule.deterministic, title, schedule.strict)
        stacks = owner.operator.stacks
        weight._products = weight._products or Products(Recipe(SparseModule, target, load, known, einsum), stacks)
        if owner.operator.in_place:
            weight._products.knows_order = all(each.operator.in_place for each in captured.owners)
            layer = weight._products.layer(weight, owner.operator.runs)
            layer.training = owner.module.training
            modules.append((layer, layer))
            continue
        runs_on = "eager" if owner.operator.statement is None else target
        sparse = SparseModule(owner.module, owner.operator.name, weight, runs_on, load, *known)
        modules.append((owner.module, sparse))
        if isinstance(owner.module, _OUT_OF_ATTENTION):
            weight._products.layer(weight, "linear").training = owner.module.training  # attention reads its weight
    forwards = _forwards(captured, weight, modules) if has_master else []
    return Built(captured, weight, modules, None, requires_grad, forwards)


def _forwards(captured: Captured, weight, modules) -> list[MasterForward]:
    """What runs the products of the owners, whose dense Parameter stays."""
    site, sparsifier = captured.site, captured.site.sparsifier
    for owner in captured.owners:
        if isinstance(owner.module, _OUT_OF_ATTENTION):
            raise ScheduleError(
                f"'{owner.name}': nn.MultiheadAttention reads the weight past its layer, so with master= it would find "
                "the dense one; leave master out",
                location=site.location,
            )
        if owner.operator.in_place or owner.operator.statement is None:
            raise ScheduleError(
                f"'{owner.name}': master= has no code for {owner.operator.name}, which is more than one product; leave "
                "master out, or take a layer of its own",
                location=site.location,
            )
    if site.block_size is not None:
        sparsifier = sparsifier.with_block(site.block_size)
    master = Master(weight, sparsifier, site.block_size, *site.master)
    owners = zip(captured.owners, modules)
    return [MasterForward(owner.module, sparse, master, owner.operator) for owner, (_, sparse) in owners]


def _keep_gradient(captured: Captured, weight) -> None:
    """Have the sparsifier of the gradient, if there is one, choose among its entries."""
    sparsifier = captured.site.gradient_sparsifier
    if sparsifier is None:
        return
    if captured.site.master is not None or len(weight._parts()) > 1:
        which = "a dense weight that stays (master=)" if captured.site.master is not None else "a sum"
        raise ScheduleError(
            f"'{captured.name}': the gradient of {which} has no code for a sparsifier; leave it out, or give the "
            "weight one format",
            location=captured.site.location,
        )
    for part in weight._parts():
        part.kept_gradient = KeptGradient(part, sparsifier)


def _refuse_format(owner, weight, location) -> None:
    operator = owner.operator
    if reason := operator.refuses_format(weight.format) or operator.refuses_shape(weight.shape, weight.format):
        raise ScheduleError(f"'{owner.name}': {reason}", location=location)


def _gradient_steps(site, owner, weight) -> dict[str, tuple]:
    """The steps of gradients by slot: of the values of each part, and of the input of this owner."""
    parts = [f"{name}.values" if name else "values" for name, _ in weight._named_parts()]
    of_values = tuple(step for step in site.gradients.get("values", ()) if step.of_loops)
    steps = {slot: of_values for slot in parts}
    given = [site.gradients[f"{path}:in0"] for path in owner.paths if f"{path}:in0" in site.gradients]
    if owner.operator.statement is None:
        return steps
    return {**steps, owner.operator.operands[1]: tuple(given[0]) if given else ()}


def _compile(built: list[Built], progress: Progress) -> None:
    """Compile the distinct kernels in threads, those of gradients where the model trains; give modules their own."""
    modules = [(each, module) for each in built for module in _that_run(each) if module.target != "eager"]
    jobs: dict[tuple, Built] = {}
    for each, module in modules:
        jobs.setdefault((load_kernel, module.spec(), module.target, each.weight.device), each)
    _run(jobs, progress)
    for each, module in modules:
        each.kernel = module.bind()
    jobs = {}
    training = [(each, module) for each, module in modules if module.training]
    for each, module in training:
        for slot in module.slots():
            jobs.setdefault((module.family().gradient, slot), each)
    _run(jobs, progress)
    for _, module in training:
        module.bind_gradients()


def _that_run(built: Built) -> list[SparseModule]:
    """The layers that run a weight's products: those that are written out, then its modules."""
    own = [module for _, module in built.modules]
    return [layer for layer in built.weight._products.made if all(layer is not each for each in own)] + own


def _run(jobs: dict[tuple, Built], progress: Progress) -> None:
    """Call `job[0](*job[1:])` in threads; an error names the first parameter that asked."""
    workers = max(1, min(len(jobs), os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="lacis-compile") as pool:
        futures = {pool.submit(*job): each for job, each in jobs.items()}
        try:
            for n, future in enumerate(concurrent.futures.as_completed(futures)):
                with _about(futures[future].captured):
                    future.result()
                progress.show("compiling", n + 1, len(futures))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def build_parameter(captured: Captured, parameter: torch.nn.Parameter, schedule) -> Built:
    """What stands in for one parameter and its owners, with these values; of `schedule` it reads the options.

    Kernels are compiled at the first call. Raises with the parameter's name.
    """
    with _about(captured):
        return _build_site(dataclasses.replace(captured, parameter=parameter), schedule, load_kernel)

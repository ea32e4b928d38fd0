# SPDX-License-Identifier: Apache-2.0
"""The schedule of a model: which parameters are sparse, how they are stored, and how their loops run."""

from __future__ import annotations

import difflib
import re
from typing import Any, Protocol

from ..errors import ScheduleError, format_location, user_location
from ..notebook import html
from .edges import Activation
from .from_checkpoint import BuildsFrom
from .handle import Group, Handle
from .modules import ROLES, Module, ModuleOperand, ModuleSite
from .names import Names
from .saved import save
from .site import Site
from .steps.tensorize import refuse_tiles
from .tree import tree

TARGETS = re.compile(r"auto|cpu|cuda|cuda:sm_\d+a?|eager")


def check_target(target) -> None:
    """Raise `ScheduleError` for what is no target."""
    if not isinstance(target, str) or not TARGETS.fullmatch(target):
        raise ScheduleError(f"no target {target!r}; targets are 'auto', 'cpu', 'cuda', 'cuda:sm_90a' and 'eager'")


class Engine(Protocol):
    """Who builds what a schedule says; see `lacis.training.engine`."""

    built: bool

    def build(self, schedule: Schedule, args: tuple, kwargs: dict): ...

    def build_from(self, schedule: Schedule, checkpoint, device): ...

    def compile_only(self, schedule: Schedule): ...

    def restore(self): ...

    def report(self, args: tuple, kwargs: dict): ...

    def kernels(self, site: Site) -> dict: ...

    def packed(self, site: Site) -> Any: ...

    def edge_kernels(self, site: Site) -> dict: ...

    def attach(self, optimizer, followers: tuple, group, resize: bool) -> Any: ...

    def resparsify(self, site: Site, sparsifier) -> None: ...

    def fit(self, site: Site) -> None: ...

    def calibrate(self, schedule: Schedule, batches, blocks: str | None) -> None: ...


class Schedule(BuildsFrom):
    """Made by `lacis.create_schedule`; indexing answers handles, whose verbs record steps.

    Recording touches neither the model nor the compiler: `build` does the work, once.
    """

    def __init__(
        self,
        model,
        engine: Engine,
        target: str = "auto",
        deterministic: bool = True,
        allow_dense: bool = False,
        strict: bool = False,
    ):
        check_target(target)
        if strict and allow_dense:
            raise ScheduleError(
                "create_schedule: strict=True keeps NaN and infinity from outputs without an entry there, "
                "and a dense layer does not; take one of strict and allow_dense"
            )
        self.model = model
        self.engine = engine
        self.target = target
        self.deterministic = deterministic
        self.allow_dense = allow_dense
        self.strict = strict
        self.location = user_location()
        self._sites: dict[str, Site] = {}
        self._edges: dict[str, Site] = {}
        self._modules: dict[str, Site] = {}
        self._known: Names | None = None
        self.may_be_empty = False  # a choice by what is there found nothing, and has said so

    @property
    def names(self) -> Names:
        """Names of the model's parameters and modules: as it is now, or as it was before `build`."""
        if not self.engine.built or self._known is None:
            self._known = Names.of(self.model)
        return self._known

    @property
    def sites(self) -> list[Site]:
        """The parameters that have steps, in the model's order."""
        order = {name: n for n, name in enumerate(self.names.parameters)}
        touched = [site for site in self._sites.values() if site.steps or any(site.gradients.values())]
        return sorted(touched, key=lambda site: order.get(site.name, len(order)))

    @property
    def edges(self) -> list[Site]:
        """The activations and gradients that are packed, in the model's order."""
        order = {path: n for n, path in enumerate(self.names.modules)}
        place = lambda site: (order.get(site.name.partition(":")[0], len(order)), site.name)
        return sorted((site for site in self._edges.values() if site.steps), key=place)

    @property
    def modules(self) -> list[Site]:
        """The modules that attend on a pattern, in the model's order."""
        known = [self._modules[path] for path in self.names.modules if path in self._modules]
        return [site for site in known if site.steps or site.gradients]

    def module(self, name: str) -> Site:
        """Where the verbs of a module are recorded; its axes are queries and keys, whose lengths a call brings."""
        return self._modules.setdefault(name, ModuleSite((name,), (None, None)))

    def edge(self, name: str) -> Site:
        """Where the verbs of an edge are recorded; its axes are `b` and `j`, whose sizes a call brings."""
        return self._edges.setdefault(name, Site((name,), (None, None)))

    def __getitem__(self, key: str):
        """The handle of a parameter, a module (`"path"`), or part of one: `"path:out"`, `"path:in0"`, `"path:key"`."""
        if not isinstance(key, str):
            raise ScheduleError(f"a name is expected, not {type(key).__name__}")
        names = self.names
        if key in names.parameters:
            return Handle(self, self._site(key))
        if reason := names.refusal(key):
            raise ScheduleError(f"'{key}' {reason}")
        path, colon, edge = key.partition(":")
        if colon and path in names.modules:
            if edge in (*ROLES, "value"):
                return ModuleOperand(self, key)
            if not re.fullmatch(r"out|in\d+", edge):
                raise ScheduleError(f"'{key}': an activation is '{path}:out', '{path}:in0', '{path}:in1', ...")
            return Activation(self, key)
        if key in names.modules:
            return Module(self, key)
        near = difflib.get_close_matches(key, [*names.parameters, *names.modules], n=3, cutoff=0.3)
        hint = f"; the nearest are {', '.join(map(repr, near))}" if near else ""
        raise ScheduleError(f"the model has no parameter or module '{key}'{hint}")

    def _site(self, name: str) -> Site:
        aliases, shape = self.names.parameters[name]
        if not shape:
            raise ScheduleError(f"'{name}' has no axes that a format could store; a lazy one has them after one run")
        if aliases[0] not in self._sites:
            self._sites[aliases[0]] = Site(aliases, shape)
        return self._sites[aliases[0]]

    def match(self, regex: str) -> Group:
        """All parameters (and modules) whose whole name matches; raises when there is none.

        A tied parameter is there once, under whichever of its names matches first.
        """
        try:
            pattern = re.compile(regex)
        except re.error as error:
            raise ScheduleError(f"match: {regex!r} is not a regular expression: {error}") from None
        names = self.names
        sites: dict[str, Any] = {}
        for name, (aliases, _) in names.parameters.items():
            if pattern.fullmatch(name):
                sites.setdefault(aliases[0], self[name])
        sites.update({f"module {name}": self[name] for name in names.modules if name and pattern.fullmatch(name)})
        for name, reason in names.refused.items():
            if not sites and pattern.fullmatch(name):
                raise ScheduleError(f"match: '{name}' {reason}")
        if not sites:
            near = _near(regex, names)
            hint = f"; it has {', '.join(map(repr, near))}" if near else ""
            raise ScheduleError(f"match: no whole name of the model matches {regex!r}{hint}")
        return Group(sites.values())

    def require_open(self, step) -> None:
        """Raise when the model is built already, or for a step that a strict schedule cannot have."""
        if self.engine.built:
            raise ScheduleError(f"{step.mnemonic}: the model is built; call restore() first", location=step.location)
        if self.strict:
            refuse_tiles([step])

    def build(self, *example, **kwargs):
        """Generate and load the kernels and put them into the model, in place; returns the model.

        Fails as a whole: on any error the model is as before.
        """
        self._require_sites("build")
        self._known = self.names  # those before the swap
        return self.engine.build(self, example, kwargs)

    def compile_only(self) -> dict:
        """Compile the kernels of a build and change nothing: each parameter's kernels by role, by its name.

        With a target that names an architecture, as `create_schedule(model, target="cuda:sm_90a")`, it needs no GPU,
        and no values: a parameter on `meta` stands for a random one. Stages can be read, and `lacis.save_kernels`
        writes the kernels. Those of gradients are compiled where the model trains, else when first looked at.

        >>> import lacis, torch
        >>> s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(40, 24)).eval(), target="cuda:sm_90a")
        >>> _ = s["0.weight"].sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr)
        >>> kernels = s.compile_only()
        >>> ".target sm_90a" in kernels["0.weight"]["forward"].asm["ptx"]
        True

        Raises `ScheduleError` for target "eager", which has no kernels, and what `build` raises.
        """
        self._require_sites("compile_only")
        return self.engine.compile_only(self)

    def _require_sites(self, what: str) -> None:
        if self.engine.built:
            raise ScheduleError(f"{what}: the model is built already; call restore() first")
        if not (self.sites or self.edges or self.modules or self.may_be_empty):
            raise ScheduleError(f"{what}: nothing is scheduled", location=self.location)

    def restore(self):
        """The original modules and dense parameters back, with the present values; returns the model."""
        return self.engine.restore()

    def calibrate(self, batches, blocks: str | None = None) -> None:
        """Run the dense model on batches, so that `Wanda` and `SparseGPT` see what their layers are given.

        A batch is a tensor, a tuple of arguments, or a dict of keywords; modules are in `eval()` meanwhile. Call it
        before `build`, which takes what was solved; the model itself is as before. `blocks` is the path of a module
        whose children follow one another, as `"model.layers"`: each child is solved on what those before, solved
        already, give it, as in the papers' own code; without it one pass of the dense model serves all.

        Raises `ScheduleError` where no sparsifier reads inputs, for a built model, and for a weight outside of
        `blocks`; `DataError` for a layer that is given nothing. Nothing has changed then.
        """
        if self.engine.built:
            raise ScheduleError("calibrate: the model is built already; call restore() first")
        self.engine.calibrate(self, batches, blocks)

    def attach(self, optimizer, *followers, group=None, resize: bool = True):
        """Have patterns change while `optimizer` trains the built model; answers the `Updates`, whose `step` you call.

        Sparsifiers with a `Ramp`, and policies, say what changes and when. What the optimizer keeps for each value
        goes with the entries, and so do `followers`: further optimizers, and copies of the model such as a moving
        average. An optimizer made before `build` gets the packed values in place of the emptied dense parameters, with
        their state; `restore` gives it the dense ones back.

        `group` must be said where `torch.distributed` has several ranks: the group that trains one model, whose first
        rank decides for all, or `"self"` where each trains its own. `resize=False` keeps storage at its length: where
        fewer values are stored, the slots behind them are room (coordinate -1, value and gradient 0), in formats whose
        `pos` counts (`Csr`, `Csc`, `Coo`, `Bsr`); others, and more values than there is storage for, are refused by
        the update. So does a group. Raises `DataError` for what cannot follow by entry, and for ranks that hold
        different patterns; nothing has changed then.

        >>> import lacis, torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4))
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        >>> s = lacis.create_schedule(model, target="eager")
        >>> policy = lacis.Regrow(0.75, when=range(0, 100, 10), share=0.3)
        >>> _ = s["0.weight"].sparsify(policy).set_format(lacis.Csr)
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):  # the optimizer was made before
        ...     model = s.build()
        >>> updates = s.attach(optimizer)
        >>> optimizer.param_groups[0]["params"][0] is model[0].weight.values
        True
        """
        return self.engine.attach(optimizer, followers, group, resize)

    def report(self, *inputs, **kwargs):
        """Run the built model on inputs and measure each sparse layer beside the dense one."""
        return self.engine.report(inputs, kwargs)

    def save(self, path) -> None:
        """Write the schedule to a file: JSON, one step a line. `lacis.load_schedule(path, model)` replays it.

        Formats are saved by class or by text, sparsifiers by class; raises `ScheduleError` for one that cannot be.
        """
        save(self, path)

    def __str__(self) -> str:
        return tree(self)

    def _repr_html_(self) -> str:
        return html(str(self))

    def __repr__(self) -> str:
        where = format_location(self.location)
        what = f"{type(self.model).__name__}, {len(self.sites)} parameters"
        return f"<Schedule of {what}, target {self.target!r}, {where}>"


def _near(regex: str, names: Names) -> list[str]:
    plain = re.sub(r"\\(.)", r"\1", regex.replace(".*", ""))
    return difflib.get_close_matches(plain, list(names.parameters), n=3, cutoff=0.3)

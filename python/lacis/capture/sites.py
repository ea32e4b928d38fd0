# SPDX-License-Identifier: Apache-2.0
"""Looks at a scheduled site of a model: who owns the parameter, and which operator serves it."""

from __future__ import annotations

import dataclasses

import torch

from ..errors import ScheduleError
from ..operators import OPERATORS, Operator, candidates, find
from ..schedule.names import Names
from .dtypes import check_dtype
from .expression import hints, parse_statement
from .spec import KernelSpec, Operand, divisible
from .slices import use_of_stack
from .uses import use_of


@dataclasses.dataclass(frozen=True)
class Owner:
    """A module that owns a scheduled parameter; `paths` are all its paths in the model."""

    module: torch.nn.Module
    attribute: str
    paths: tuple[str, ...]
    operator: Operator

    @property
    def name(self) -> str:
        """The parameter's first name here."""
        return f"{self.paths[0]}.{self.attribute}" if self.paths[0] else self.attribute


@dataclasses.dataclass(frozen=True)
class Captured:
    """A scheduled parameter, with the modules that own it."""

    site: object
    parameter: torch.nn.Parameter
    owners: tuple[Owner, ...]

    @property
    def name(self) -> str:
        return self.site.name


def capture_site(model, site) -> Captured:
    """The owners and operators of a site. Raises `ScheduleError`, by name, for what cannot be built."""
    found: dict[tuple, tuple[torch.nn.Module, str, list[str]]] = {}
    parameter = None
    for name in site.names:
        path, _, attribute = name.rpartition(".")
        module, parameter = _resolve(model, name, path, attribute, site)
        _refuse_owner(model, name, path, module, attribute, site)
        found.setdefault((id(module), attribute), (module, attribute, []))[2].append(path)
    owners = []
    for module, attribute, paths in found.values():
        name = f"{paths[0]}.{attribute}" if paths[0] else attribute
        operator = _operator(model, module, attribute, name, site)
        _refuse_whole_model(paths, name, operator, site)
        owners.append(Owner(module, attribute, tuple(paths), operator))
    check_dtype(site.name, parameter.dtype, site.location)
    return Captured(site, parameter, tuple(owners))


def _operator(model, module, attribute: str, name: str, site) -> Operator:
    """The operator of the layer, or where it has none and the parameter is a matrix, that of its products."""
    try:
        return find(module, attribute, name, site.location, len(site.axes))
    except ScheduleError as error:
        if reason := Names.of(model).refusal(name):
            raise ScheduleError(f"'{name}' {reason}", location=site.location) from None
        if candidates(module, attribute) or len(site.shape) < 2:
            raise
        reason, raw = use_of(module, attribute) if len(site.shape) == 2 else use_of_stack(module, attribute, site.shape)
        if reason:
            raise ScheduleError(f"{error.message}; {reason}", location=site.location) from None
        return OPERATORS[raw]


def _refuse_whole_model(paths, name, operator: Operator, site) -> None:
    if "" in paths and not operator.in_place:
        raise ScheduleError(
            f"'{name}': the model is the layer itself and cannot be replaced in place; wrap it in torch.nn.Sequential",
            location=site.location,
        )


def _resolve(model, name, path, attribute, site):
    try:
        module = model.get_submodule(path)
    except AttributeError:
        module = None
    parameter = getattr(module, attribute, None)
    if not isinstance(parameter, torch.nn.Parameter):
        reason = Names.of(model).refusal(name) or "is no parameter of the model any more"
        raise ScheduleError(f"'{name}' {reason}", location=site.location)
    return module, parameter


def _refuse_owner(model, name, path, module, attribute, site) -> None:
    if torch.nn.utils.parametrize.is_parametrized(module):
        raise ScheduleError(
            f"'{name}': {type(module).__name__} is parametrised; "
            "call torch.nn.utils.parametrize.remove_parametrizations first",
            location=site.location,
        )
    if "forward" in vars(module):
        raise ScheduleError(
            f"'{name}': the forward of its {type(module).__name__} was replaced on the object, "
            "so no kernel can take its place",
            location=site.location,
        )


def kernel_spec(
    operator: Operator, packed, has_bias: bool, steps=(), location=None, kind: str | None = None
) -> KernelSpec:
    """The specification of an operator's kernel on a packed weight, for a kind of device, by default the weight's."""
    terms, output = parse_statement(operator.statement)
    dtype = packed.dtype
    formats = [packed.pattern.typed_text] + [None] * (len(terms) - 1)
    operands = tuple(Operand(n, t, dtype, f) for n, t, f in zip(operator.operands, terms, formats))
    bias = Operand("bias", tuple(operator.bias), dtype) if has_bias else None
    classes = tuple((letter, divisible(size)) for letter, size in zip(terms[0], packed.shape))
    y, known = Operand("y", output, dtype), hints(terms[0], packed, kind)
    return KernelSpec(operator.name, operands, y, bias, classes, tuple(steps), location, **known)

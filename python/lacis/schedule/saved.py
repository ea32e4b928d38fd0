# SPDX-License-Identifier: Apache-2.0
"""A schedule as JSON, one step a line, so that two can be compared line by line, and read back onto a fresh model."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os

from .. import formats, sparsifiers
from ..errors import ScheduleError
from ..formats import Format, Sum
from ..sparsifiers import PatternRule, Ramp, Sparsifier
from .steps import STEPS, Step

VERSION = 1
_CHOOSE = (Sparsifier, PatternRule)
_GRADIENT = ".grad"
_OPTIONS = ("target", "deterministic", "allow_dense", "strict")
_LATER = "strict"  # files from before there was one lack it
_KINDS = ("parameters", "activations", "gradients", "modules")


def save(schedule, path: str | os.PathLike) -> None:
    """Write a schedule to a file. Raises `ScheduleError` for what JSON cannot hold, before anything is written."""
    text = to_text(schedule)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def to_text(schedule) -> str:
    """The JSON text: the options, then parameters, activations and gradients, each with its steps as recorded.

    Activations and gradients are there where they have steps.
    """
    lines = [f'"lacis": {VERSION}', *(f'"{name}": {json.dumps(getattr(schedule, name))}' for name in _OPTIONS)]
    for kind, found in _sections(schedule).items():
        if found or kind == "parameters":
            named = [_section(name, steps) for name, steps in found.items()]
            lines.append(f'"{kind}": {{\n' + ",\n".join(named) + "\n  }" if named else f'"{kind}": {{}}')
    return "{\n" + ",\n".join(f"  {line}" for line in lines) + "\n}\n"


def _sections(schedule) -> dict[str, dict[str, list[Step]]]:
    """What has steps, by kind and name; a gradient has the name of what it is the gradient of."""
    parameters = {site.name: site.steps for site in schedule.sites if site.steps}
    activations: dict[str, list[Step]] = {}
    gradients: dict[str, list[Step]] = {}
    for site in schedule.edges:
        of = site.name.removesuffix(_GRADIENT)
        (activations if of == site.name else gradients)[of] = list(site.steps)
    for site in [*schedule.sites, *schedule.modules]:
        for key, steps in site.gradients.items():
            gradients.setdefault(site.name if key == "values" else key, []).extend(steps)
    modules = {site.name: list(site.steps) for site in schedule.modules if site.steps}
    return {"parameters": parameters, "activations": activations, "gradients": gradients, "modules": modules}


def _section(name: str, steps) -> str:
    lines = ",\n".join(f"      {json.dumps(_of_step(name, step))}" for step in steps)
    return f"    {json.dumps(name)}: [\n{lines}\n    ]"


def read(path: str | os.PathLike) -> dict:
    """The content of a file that `save` wrote. Raises `ScheduleError` for any other."""
    with open(path, encoding="utf-8") as file:
        try:
            content = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ScheduleError(f"'{path}' is no saved schedule: {error}") from None
    if not isinstance(content, dict) or content.get("lacis") != VERSION:
        raise ScheduleError(f"'{path}' is no schedule that this version reads ({VERSION})")
    for name in _OPTIONS:
        if name not in content and name != _LATER:
            raise ScheduleError(f"'{path}' does not say '{name}'")
    for kind in _KINDS:
        named = content.get(kind, {})
        steps = [step for steps in named.values() for step in steps] if _is_lists(named) else [None]
        if not all(isinstance(step, dict) for step in steps):
            raise ScheduleError(f"'{path}': '{kind}' must have a list of steps for each name")
    return content


def _is_lists(named) -> bool:
    return isinstance(named, dict) and all(isinstance(steps, list) for steps in named.values())


def options(content: dict) -> dict:
    """The keywords of `create_schedule`."""
    return {name: content[name] for name in _OPTIONS if name in content}


def replay(schedule, content: dict, location, classes=()) -> None:
    """Record the steps of a file on a schedule; `location` stands for the line of each.

    The file names formats and sparsifiers of Lacis and those of `classes`. It makes no module be imported.
    """
    known = _known(classes)
    for kind in _KINDS:
        for name, steps in content.get(kind, {}).items():
            handle = schedule[name].grad if kind == "gradients" else schedule[name]
            for fields in steps:
                handle._take(_to_step(fields, location, known))


def _of_step(name: str, step: Step) -> dict:
    try:
        return {"verb": step.mnemonic, **{name: _encode(value) for name, value in step.arguments().items()}}
    except ScheduleError as error:
        raise ScheduleError(f"save: '{name}': {step.mnemonic}: {error.message}", location=step.location) from None


def _known(classes) -> dict[str, type]:
    """The classes that a file may name, by import path."""
    own = [*vars(formats).values(), *vars(sparsifiers).values()]
    for cls in classes:
        if not isinstance(cls, type) or not issubclass(cls, (Format, *_CHOOSE)):
            raise ScheduleError(f"classes: {cls!r} is no format and no sparsifier")
    mine = [cls for cls in own if isinstance(cls, type) and issubclass(cls, (Format, Sum, *_CHOOSE))]
    return {_path(cls): cls for cls in [*mine, *classes]}


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _to_step(fields: dict, location, known) -> Step:
    verb = fields.get("verb")
    cls = STEPS.get(verb) if isinstance(verb, str) else None
    if cls is None:
        raise ScheduleError(f"the saved schedule has no such verb: {verb!r}")
    return cls.of_fields({name: _decode(value, known) for name, value in fields.items() if name != "verb"}, location)


def _encode(value):
    if isinstance(value, (tuple, list)):
        return [_encode(item) for item in value]
    if isinstance(value, (Format, Sum, *_CHOOSE)):
        return _of_object(value)
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, Ramp):
        return {"ramp": {field.name: _encode(getattr(value, field.name)) for field in dataclasses.fields(value)}}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ScheduleError(f"a {type(value).__name__} has no place in a file")


def _decode(value, known):
    if isinstance(value, list):
        return tuple(_decode(item, known) for item in value)
    return _to_object(value, known) if isinstance(value, dict) else value


def _of_object(value) -> dict:
    """A class by its import path, with the arguments that make the object again; a format else by its text."""
    cls = type(value)
    path = _path(cls)
    importable = cls.__module__ != "__main__" and "<locals>" not in path and cls is not Sum and cls is not Format
    if importable:
        try:
            return {"class": path, **_arguments(value)}
        except ScheduleError:
            if isinstance(value, _CHOOSE):
                raise
    if isinstance(value, _CHOOSE):
        raise ScheduleError(f"'{cls.__qualname__}' cannot be imported by another process; put it into a module")
    return {"format": str(value)}


def _arguments(value) -> dict:
    """The arguments of the constructor, which the object keeps under their names; defaults are left out."""
    found = {}
    parameters = inspect.signature(type(value)).parameters if type(value).__init__ is not object.__init__ else {}
    for name, parameter in parameters.items():
        if not hasattr(value, name):
            raise ScheduleError(f"'{type(value).__qualname__}' does not keep its argument '{name}'")
        argument = value.argument(name) if isinstance(value, Sparsifier) else getattr(value, name)
        if argument != parameter.default:
            found[name] = _encode(argument)
    return found


def _to_object(fields: dict, known):
    if isinstance(fields.get("range"), list):
        return range(*fields["range"])
    if isinstance(fields.get("ramp"), dict):
        return Ramp(**{name: _decode(value, known) for name, value in fields["ramp"].items()})
    if isinstance(fields.get("format"), str):
        return Format.parse(fields["format"])
    path = fields.get("class")
    cls = known.get(path) if isinstance(path, str) else None
    if cls is None:
        raise ScheduleError(
            f"the saved schedule names the class {path!r}, which is none of Lacis; "
            "where you trust it, import it and give it: load_schedule(path, model, classes=[...])"
        )
    arguments = {key: _decode(value, known) for key, value in fields.items() if key != "class"}
    try:
        return cls(**arguments)
    except TypeError as error:
        raise ScheduleError(f"the saved schedule makes a '{path}' that cannot be: {error}") from None


def steps_to_json(name: str, steps) -> list[dict]:
    """Steps of the parameter `name` as they stand in a file. Raises `ScheduleError` for what JSON cannot hold."""
    return [_of_step(name, step) for step in steps]


def steps_from_json(found, classes=()) -> tuple[Step, ...]:
    """What `steps_to_json` was given. Raises `ScheduleError` for what it has not made."""
    known = _known(classes)
    if not isinstance(found, list) or not all(isinstance(fields, dict) for fields in found):
        raise ScheduleError(f"a list of steps is expected, not {found!r}")
    return tuple(_to_step(fields, None, known) for fields in found)

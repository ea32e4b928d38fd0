# SPDX-License-Identifier: Apache-2.0
"""Doors of a schedule's modules: made, put into a model, and taken out again."""

from __future__ import annotations

import weakref

import torch

from .attention import Door
from .classes import attending, without
from .hugging_face import configured


def make_doors(model, schedule) -> list[Door]:
    """Everything that can fail about the modules of a schedule; the model is not touched.

    A module of two names has one door.
    """
    doors: dict[int, tuple[Door, object]] = {}
    for site in schedule.modules:
        module = model.get_submodule(site.name)
        if id(module) in doors:
            door, first = doors[id(module)]
            if _said(first) != _said(site):
                door.refuse(f"'{site.name}' is the same module, with other verbs; give both the same, or name one")
            door.names.append(site.name)
            continue
        door = Door(site, schedule.target)
        if "_lacis_door" in vars(module):
            door.refuse("another schedule was built on it; restore() that one first, or copy a model before build()")
        if "forward" in vars(module):
            door.refuse(f"the forward of its {type(module).__name__} was replaced on the object")
        door.configured = configured(module, door.refuse)
        door.module, door.made = weakref.ref(module), attending(type(module), door.refuse)
        door.encoders = [weakref.ref(each) for each in _encoders(model, module)]
        doors[id(module)] = door, site
    return [door for door, _ in doors.values()]


def _said(site) -> tuple:
    """The verbs of a site; rules of a class with the same fields count as the same."""
    rule = site.sparsifier
    said = repr(rule) if getattr(rule, "pure", False) else (type(rule), _fields(rule))
    formats = [step.describe() for step in site.of("set_format")]  # one without sides is equal to none yet
    others = [step for step in site.steps if step.mnemonic not in ("sparsify", "set_format")]
    return said, formats, others, site.gradients


def _fields(rule) -> dict:
    """The fields of a rule: numbers and words as they are, anything else by its identity."""
    fields = {} if rule is None else {name: each for name, each in vars(rule).items() if not name.startswith("_")}
    return {name: each if isinstance(each, (int, float, str)) else id(each) for name, each in fields.items()}


def _encoders(model, module) -> list[torch.nn.Module]:
    """Encoders of torch around a module that give their layers nested tensors, which its attention does not take."""
    encoders = [each for each in model.modules() if isinstance(each, torch.nn.TransformerEncoder)]
    inside = lambda each: each is not module and any(part is module for part in each.modules())
    return [each for each in encoders if getattr(each, "use_nested_tensor", False) and inside(each)]


def open_doors(doors, undo) -> None:
    """Give each module a class of its own, below the one that it has, whose forward goes through its door."""
    for door in doors:
        module = door.module()
        undo.will_assign(module, "__class__")
        undo.will_fill(module.__dict__)
        undo.will_fill(module._forward_pre_hooks)
        module.__dict__["_lacis_door"] = door
        door.hook = module.register_forward_pre_hook(stay_visible)
        for each, _, config in door.configured:
            undo.will_fill(each.__dict__)
            each.__dict__["config"] = config
        _say_nested(door, False, undo)
        module.__class__ = door.made


def close_doors(doors, undo) -> None:
    """The classes that the modules had, wherever these are now."""
    for door in doors:
        module = door.module()
        if module is None or vars(module).get("_lacis_door") is not door:  # its user let it go
            continue
        cls = without(type(module), door.made, door.refuse)
        undo.will_assign(module, "__class__")
        undo.will_fill(module.__dict__)
        undo.will_fill(module._forward_pre_hooks)
        door.hook.remove()
        module.__class__ = cls
        del module.__dict__["_lacis_door"]
        for each, before, config in door.configured:
            if vars(each).get("config") is config:
                undo.will_fill(each.__dict__)
                each.__dict__["config"] = before
    for door in doors:
        _say_nested(door, True, undo)


def _say_nested(door, nested: bool, undo) -> None:
    """Whether the encoders around a door convert; they do not while there are doors in them."""
    for encoder in [held() for held in door.encoders]:
        if encoder is None or (nested and any("_lacis_door" in vars(each) for each in encoder.modules())):
            continue
        undo.will_fill(encoder.__dict__)
        encoder.use_nested_tensor = nested


def stay_visible(module, args) -> None:
    """A hook, for which torch's encoder layers call the forward of their attention, and not past it."""

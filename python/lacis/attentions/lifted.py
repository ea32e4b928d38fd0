# SPDX-License-Identifier: Apache-2.0
"""Score and mask functions in graphs of torch.compile: tensors that they read are operands, the rest has a token."""

from __future__ import annotations

import builtins
import dis
import itertools
import math
import os
import sys
import types
from collections.abc import Callable, Iterator

import torch

from ..errors import DataError
from .said import names_of

_WHY = (
    "lacis.attention is one node of a graph for a Pattern, a rule, a BlockMask or a tensor of blocks, without steps, "
    "and with functions whose tensors and numbers the graph can have (docs/attention.md, In a graph)"
)
_constant = torch.compiler.assume_constant_result  # dynamo calls it of constants, as it traces
_numbers = itertools.count()
_KNOWN: dict[str, tuple] = {}  # what a function says, by token; as many as there were traces
_FIXED = (int, str, type(None), torch.dtype, torch.device)
_OF_TORCH = os.path.dirname(torch.__file__) + os.sep
_OF_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_CLASSDEREF")
_OF_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
# What globals of these names are; dynamo knows no globals of a function that is made in a graph.
_MODULES = {"torch": torch, "math": math}
# Names of what is otherwise in an operator: whether gradients are recorded, and variables by their names.
_ELSEWHERE = {"is_grad_enabled", "is_inference_mode_enabled", "grad", "globals", "locals", "vars", "eval", "exec"}
_DEEPEST = 3  # objects and functions, one inside of the other


class Attributes:
    """What a function reads of an object."""


def lifted(function, tensors: list[torch.Tensor], arguments: int = 5) -> str | None:
    """A token of what a function says, but for its tensors, which are put behind the others; empty of no function.

    It is called with so many arguments.

    Dynamo traces this and guards what is read: captured names, defaults, globals, and attributes of these. None of what
    is no function of Python, and of one that writes, or reads what no graph has as an operand or a constant.
    """
    if function is None:
        return ""
    said = _function(function, tensors, 0, arguments)
    return None if said is None else _token(said)


def rebuilt(token: str, tensors: Iterator[torch.Tensor]) -> Callable | None:
    """The function of a token, which reads the next of these tensors; None of the empty one."""
    if not token:
        return None
    if token not in _KNOWN:
        raise DataError(f"'{token}' of a compiled graph is of another process; compile the graph in this one")
    return _built(_KNOWN[token], tensors)


@torch.compiler.disable(reason=_WHY)
def apart(*given, **named):
    """An eager call, between two graphs."""
    from .attention import attention

    return attention(*given, **named)


@_constant
def _token(said: tuple) -> str:
    token = f"function {next(_numbers)}"
    _KNOWN[token] = said
    return token


def _function(function, tensors: list, depth: int, arguments: int = 0) -> tuple | None:
    owner = None
    if isinstance(function, types.MethodType):
        owner, function = function.__self__, function.__func__
    if not isinstance(function, types.FunctionType) or depth > _DEEPEST:
        return None
    code = function.__code__
    read = _read_by(code)
    if read is None:
        return None
    names, usual, objects = read
    if _is_shadowed(function.__module__, usual):
        return None
    try:
        closure, defaults = function.__closure__ or (), function.__defaults__ or ()
    except AttributeError:  # before torch 2.14 dynamo says nothing of what a function made in the graph reads
        if code.co_freevars or names or code.co_argcount > arguments:
            return None
        closure, defaults = (), ()
    values = [(name, cell.cell_contents) for name, cell in zip(code.co_freevars, closure)]
    values += [("", value) for value in defaults]
    values += [(name, function.__globals__[name]) for name in names]
    if owner is not None:
        values.append((code.co_varnames[0], owner))
    parts = _parts(values, tensors, objects, depth)
    return None if parts is None else ("function", code, len(defaults), names, owner is not None, parts)


def _parts(values: list, tensors: list, objects: tuple, depth: int) -> tuple | None:
    """What values of a name are."""
    parts = []
    for name, value in values:
        part = _part(name, value, tensors, objects, depth + 1)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def _part(name: str, value, tensors: list, objects: tuple, depth: int) -> tuple | None:
    """Of an object that code has by this name what it reads of its attributes; None where it takes more of it."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return ("tensor",)
    if isinstance(value, float):
        return "float", value.hex()  # dynamo makes a constant of it so, which it makes of no number that has changed
    if isinstance(value, _FIXED):
        return "fixed", value
    if isinstance(value, types.MethodType):
        return _function(value, tensors, depth)
    if isinstance(value, types.FunctionType):
        is_fixed = _is_of_torch(value.__module__) and _is_written_there(value)
        return ("fixed", value) if is_fixed else _function(value, tensors, depth)
    if isinstance(value, types.BuiltinFunctionType):
        return ("fixed", value) if _is_of_none(value) else None
    if isinstance(value, types.ModuleType) and _is_of_torch(value.__name__):
        return "fixed", value  # of others, and of classes, attributes may be tensors
    attributes = [own for each, own in objects if each == name]
    if not attributes or depth > _DEEPEST:
        return None
    own = [each for each in attributes[0] if hasattr(value, each)]
    parts = _parts([(each, getattr(value, each)) for each in own], tensors, objects, depth)
    return None if parts is None else ("object", tuple(own), parts)


@_constant
def _is_of_torch(module: str | None) -> bool:
    return (module or "").split(".")[0] == "torch"


@_constant
def _is_written_there(function: types.FunctionType) -> bool:
    """Not by a user who gave it the name of another, as `functools.wraps` does."""
    return function.__code__.co_filename.startswith(_OF_TORCH)


@_constant
def _is_of_none(function: types.BuiltinFunctionType) -> bool:
    """Is it no method of an object, which may hold tensors?"""
    return isinstance(function.__self__, (types.ModuleType, type(None)))


@_constant
def _is_shadowed(module: str | None, names: tuple[str, ...]) -> bool:
    """Does the module of a function call something else so than everybody does?"""
    known = vars(sys.modules[module]) if module in sys.modules else {}
    usual = {**vars(builtins), **_MODULES}
    return any(known.get(name, usual[name]) is not usual[name] for name in names)


@_constant
def _read_by(code: types.CodeType) -> tuple | None:
    """Globals that code reads, those that mean the same everywhere, and objects, of which it reads attributes alone.

    Objects by the name of a variable or attribute, with the names of what is read of them. None of code that writes, or
    looks at what surrounds it.
    """
    known = names_of(code)
    if known is None or code.co_kwonlyargcount or _ELSEWHERE.intersection(known):
        return None
    names, usual, objects, whole = {}, {}, {}, set()
    for each in _codes(code):
        instructions = [one for one in dis.get_instructions(each) if one.opname != "CACHE"]
        for one, after in zip(instructions, [*instructions[1:], None]):
            if one.opname not in _OF_ATTRIBUTES and not one.opname.startswith(_OF_VARIABLES):
                continue
            if one.opname == "LOAD_GLOBAL":
                (usual if one.argval in _MODULES or hasattr(builtins, one.argval) else names)[one.argval] = None
            named = one.argval if isinstance(one.argval, tuple) else (one.argval,)  # two at once from Python 3.13 on
            if len(named) == 1 and after is not None and after.opname in _OF_ATTRIBUTES:
                objects.setdefault(one.argval, {})[after.argval] = None
            else:
                whole.update(named)
    alone = tuple((name, tuple(read)) for name, read in objects.items() if name not in whole)
    return tuple(names), tuple(usual), alone


def _codes(code: types.CodeType) -> list[types.CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return [code, *(one for each in inner for one in _codes(each))]


def _built(said: tuple, tensors: Iterator[torch.Tensor]):
    kind = said[0]
    if kind == "tensor":
        return next(tensors)
    if kind == "fixed":
        return said[1]
    if kind == "float":
        return float.fromhex(said[1])
    if kind == "object":
        made = Attributes()
        vars(made).update((name, _built(part, tensors)) for name, part in zip(*said[1:]))
        return made
    _, code, defaults, names, is_method, parts = said
    values = [_built(part, tensors) for part in parts]
    owner = values.pop() if is_method else None
    cells, values = values[: len(code.co_freevars)], values[len(code.co_freevars) :]
    known = {"__builtins__": builtins, **_MODULES, **dict(zip(names, values[defaults:]))}
    closure = tuple(types.CellType(value) for value in cells)
    function = types.FunctionType(code, known, code.co_name, tuple(values[:defaults]) or None, closure)
    return types.MethodType(function, owner) if is_method else function

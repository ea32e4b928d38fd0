# SPDX-License-Identifier: Apache-2.0
"""What a function of coordinates says, as a key: functions with equal keys are traced to the same expression."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import math
import types
from collections.abc import Callable, Hashable

import torch

from ..capture.traced import FUNCTIONS

_PLAIN = (int, float, bool, str, type(None))
# Names of what answers by its arguments alone: functions and constants of torch, math and Python itself.
_PURE = {*FUNCTIONS, "clamp", *(name for name in dir(math) if name[0] != "_"), "bool", "float", "int", "round"}
_BUILTINS = vars(builtins)
_STORES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "IMPORT_NAME"}
_DEEPEST = 3  # functions that functions call, one below the other; one that calls itself has no end


def said(function: Callable, tensors: list[torch.Tensor], depth: int = 0) -> Hashable | None:
    """Its code and the plain values that it reads; None where it reads or writes more, so that it must be run to know.

    Of a tensor it is the kind; it is put behind the `tensors` that are known, if it is not among them.

    >>> less = lambda n: lambda b, h, i, j: i - j < n
    >>> said(less(2), []) == said(less(2), []), said(less(2), []) == said(less(3), [])
    (True, False)
    >>> one, two = torch.ones(1), torch.ones(2)
    >>> said(less(one), []) == said(less(2 * one), []), said(less(one), []) == said(less(two), [])
    (True, False)
    """
    owner = getattr(function, "__self__", None)
    function = getattr(function, "__func__", function)
    if type(function) is not types.FunctionType or function.__kwdefaults__ or depth > _DEEPEST:
        return None
    code = function.__code__
    names = names_of(code)
    if names is None:
        return None
    try:
        read = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # a name that has no value yet
        return None
    read += function.__defaults__ or ()
    read += [] if owner is None else [owner]
    known = [name for name in names if name in function.__globals__]
    read += [function.__globals__[name] for name in known]
    others = [name for name in names if name not in known and name not in _PURE]
    # Attributes of plain values, of coordinates, and of objects that are looked at whole; modules and functions change.
    answers = any(value is torch or value is math or callable(value) for value in read)
    if others and (answers or any(name in _BUILTINS for name in others)):
        return None
    if any(hasattr(type(value), name) for value in read if _is_own(type(value)) for name in names):
        return None  # a class may change, too
    parts = tuple([_said(value, tensors, depth) for value in read])
    return None if None in parts else (code, *known, *parts)


def kind_of_tensor(tensor, tensors: list[torch.Tensor]) -> Hashable | None:
    """What reads of it follow from beside its values, and which of the tensors it is; None of a class of its own."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or vars(tensor):
        return None
    if tensor.layout is not torch.strided or tensor.is_nested:
        return None
    is_wide = tuple(stride == 0 for stride in tensor.stride())
    kind = tensor.dtype, tensor.shape, is_wide, tensor.requires_grad, tensor.device
    return number_of(tensor, tensors), *kind


def number_of(tensor: torch.Tensor, tensors: list[torch.Tensor]) -> int:
    """Where it is among them, at the end if it was not."""
    for number, each in enumerate(tensors):
        if each is tensor:
            return number
    tensors.append(tensor)
    return len(tensors) - 1


def _said(value, tensors: list[torch.Tensor], depth: int) -> Hashable | None:
    if type(value) in _PLAIN:
        return type(value), repr(value)  # 1 and True are equal, and so are 0.0 and -0.0
    if value is torch or value is math:
        return value.__name__
    if isinstance(value, (types.FunctionType, types.MethodType)):
        return said(value, tensors, depth + 1)
    if isinstance(value, torch.Tensor):
        return kind_of_tensor(value, tensors)
    if depth > _DEEPEST or not _is_own(type(value)):
        return None
    parts = tuple([(name, _said(own, tensors, depth + 1)) for name, own in vars(value).items()])
    return None if any(part is None for _, part in parts) else (type(value), *parts)


@functools.lru_cache(maxsize=256)  # as many classes of patterns are unlikely
def _is_own(kind: type) -> bool:
    """Is it a class of Lacis, whose objects say by their attributes all that they are?"""
    return kind.__module__.startswith(("lacis.attentions.", "lacis.nn.", "lacis.sparsifiers."))


@functools.lru_cache(maxsize=1024)  # functions of a program; as many expressions are known to be exact
def names_of(code: types.CodeType) -> tuple[str, ...] | None:
    """Names that it reads, in the order of their first use; None of code that writes what outlives it."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    outside = set(code.co_freevars)
    for each in dis.get_instructions(code):
        if each.opname in _STORES or (each.opname in ("STORE_DEREF", "DELETE_DEREF") and each.argval in outside):
            return None
    inner = [names_of(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    if None in inner:
        return None
    return tuple(dict.fromkeys([*code.co_names, *(name for names in inner for name in names)]))

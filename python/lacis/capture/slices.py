# SPDX-License-Identifier: Apache-2.0
"""How a module's own forward uses a stack of matrices: one at a time, `self.w[e]`, or all in one batched product."""

from __future__ import annotations

import ast
import inspect
import textwrap

import torch

_ALONE = {"shape", "dtype", "device", "ndim", "size", "dim", "numel"}  # what a packed weight answers as a dense one
_BATCHED = {"bmm", "grouped_mm", "_grouped_mm"}


def use_of_stack(module: torch.nn.Module, attribute: str, shape) -> tuple[str | None, str]:
    """Why what the forward does with a parameter of three axes is no product of its matrices, or None; the operator.

    It is read from the source, for loops over experts cannot be traced.

    >>> class Experts(torch.nn.Module):
    ...     def forward(self, x, which):
    ...         for e in which:
    ...             x = torch.nn.functional.linear(x, self.up[e]) * self.scale[e]
    ...         return x + self.other
    >>> [_use(ast.parse(textwrap.dedent(inspect.getsource(Experts.forward))), name) for name in ("up", "other")]
    [None, 'its forward uses it in another way than self.other[number]']
    """
    if len(shape) != 3:
        return "a bare tensor of more than three axes has no product of its own: make its matrices layers, one each", ""
    forward = inspect.unwrap(type(module).forward)  # transformers chooses by the config among ways to run experts
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(forward)))
    except (OSError, TypeError, SyntaxError):
        return "the source of its forward is not there to see how it uses the stack", ""
    reason = _use(tree, attribute)
    return (None, "stacked") if reason is None else (f"{reason}; make its matrices layers, one each", "")


def _use(tree, attribute: str) -> str | None:
    """What is wrong with how a function uses `self.attribute`."""
    above = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == attribute]
    uses = [above[id(node)] for node in found if isinstance(node.value, ast.Name)]
    if not all(_reads(user, node) or _asks(user) for user, node in zip(uses, found)):
        return f"its forward uses it in another way than self.{attribute}[number]"
    read = any(_reads(user, node) for user, node in zip(uses, found))
    return None if read else f"its forward does not read self.{attribute}[number]"


def _reads(user, node) -> bool:
    if isinstance(user, ast.Subscript):
        return user.value is node and isinstance(user.ctx, ast.Load)
    return isinstance(user, ast.Call) and isinstance(user.func, ast.Attribute) and user.func.attr in _BATCHED


def _asks(user) -> bool:
    return isinstance(user, ast.Attribute) and user.attr in _ALONE

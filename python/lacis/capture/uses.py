# SPDX-License-Identifier: Apache-2.0
"""How a module's own forward uses a parameter: as a matrix in products, or in a way that needs the dense tensor."""

from __future__ import annotations

import operator

import torch
import torch.fx
import torch.nn.functional as F

_PRODUCTS = {F.linear, torch.matmul, operator.matmul, torch.mm, torch.addmm}
_PRODUCT_METHODS = {"matmul", "mm", "addmm"}
_TURNS = {torch.t, torch.transpose}
_TURN_METHODS = {"t", "transpose"}
_TURN_ATTRIBUTES = {"T", "mT"}
_ALONE = {"shape", "dtype", "device", "ndim", "size", "dim", "numel"}  # what a packed weight answers as a dense one


class _Tracer(torch.fx.Tracer):
    """Children are called, not looked into: they may not be traced."""

    def is_leaf_module(self, module, name):
        return True


def use_of(module: torch.nn.Module, attribute: str) -> tuple[str | None, str]:
    """Why what the forward does with a parameter is no product with it as a matrix, or None; and the operator.

    >>> class Router(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.gate, self.scale = torch.nn.Parameter(torch.ones(4, 8)), torch.nn.Parameter(torch.ones(4))
    ...     def forward(self, x):
    ...         return F.linear(x, self.gate).softmax(-1) * self.scale
    >>> use_of(Router(), "gate"), use_of(Router(), "scale")[0]
    ((None, 'raw'), "its forward uses it in 'mul', which needs the dense tensor")
    """
    if isinstance(module, torch.nn.MultiheadAttention) and attribute.endswith("proj_weight"):
        return None, "raw"
    if isinstance(module, torch.nn.RNNBase | torch.nn.RNNCellBase):
        return "torch runs all of its weights in one operator; write its cell with torch.nn.Linear (docs/layers.md)", ""
    try:
        graph = _Tracer().trace(module)
    except Exception as error:  # whatever the user's code does with a proxy
        first = str(error).partition("\n")[0]
        return f"its forward cannot be traced to see how it uses the parameter ({type(error).__name__}: {first})", ""
    nodes = [node for node in graph.nodes if node.op == "get_attr" and node.target == attribute]
    used = [use for node in nodes for use in _uses(node)]
    other = next((name for name, raw in used if raw is None), None)
    if other is not None:
        return f"its forward uses it in '{other}', which needs the dense tensor", ""
    return (None, used[0][1]) if used else ("its forward does not use it in a product", "")


def _uses(node, turned: bool = False):
    """(name, operator or None) of all that a matrix goes into, through its transposes."""
    for user in node.users:
        if _turns(user):
            yield from _uses(user, not turned)
        elif user.target is operator.matmul and user.args[0] is node:
            yield "@ with the parameter first (torch.compile swaps the two; write torch.matmul(w, x))", None
        elif not _asks(user):
            product, last = _is_product(user, node), _name(user) != "linear" and user.args[0] is not node
            yield _name(user), (("raw", "transposed_raw")[last != turned] if product else None)


def _asks(user) -> bool:
    return _name(user) in _ALONE and (user.op == "call_method" or user.target is getattr)


def _turns(user) -> bool:
    if user.target is getattr:
        return user.args[1] in _TURN_ATTRIBUTES
    return user.target in (_TURN_METHODS if user.op == "call_method" else _TURNS)


def _is_product(user, node) -> bool:
    known = user.target in (_PRODUCT_METHODS if user.op == "call_method" else _PRODUCTS)
    if not known or user.op not in ("call_function", "call_method"):
        return False
    bias = user.kwargs.get("bias", user.args[2] if user.target is F.linear and len(user.args) > 2 else None)
    added = user.args[0] if _name(user) == "addmm" else None
    return node is not bias and node is not added and _count(user, node) == 1


def _count(user, node) -> int:
    return sum(each is node for each in (*user.args, *user.kwargs.values()))


def _name(user) -> str:
    if user.target is getattr:
        return user.args[1]
    return getattr(user.target, "__name__", str(user.target))

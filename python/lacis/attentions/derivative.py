# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the expressions that change scores."""

from __future__ import annotations

import math

from ..capture.chain import Expression

_ONE, _ZERO = ("number", 1.0), ("number", 0.0)
_FACTORS = {
    "add": lambda x, a, b: (_ONE, _ONE),
    "sub": lambda x, a, b: (_ONE, ("number", -1.0)),
    "mul": lambda x, a, b: (b, a),
    "div": lambda x, a, b: (("div", _ONE, b), ("neg", ("div", x, b))),
    "neg": lambda x, a: (("number", -1.0),),
    "exp": lambda x, a: (x,),
    "exp2": lambda x, a: (("mul", x, ("number", math.log(2))),),
    "log": lambda x, a: (("div", _ONE, a),),
    "tanh": lambda x, a: (("sub", _ONE, ("mul", x, x)),),
    "sqrt": lambda x, a: (("div", ("number", 0.5), x),),
    "erf": lambda x, a: (("mul", ("number", 2 / math.sqrt(math.pi)), ("exp", ("neg", ("mul", a, a)))),),
    "abs": lambda x, a: (_sign(a, _ZERO, -1.0),),
    "maximum": lambda x, a, b: (_sign(a, b, 0.0, 0.5), _sign(b, a, 0.0, 0.5)),
    "minimum": lambda x, a, b: (_sign(b, a, 0.0, 0.5), _sign(a, b, 0.0, 0.5)),
}


def derivative(body: Expression, number: int) -> Expression | None:
    """Of the expression by ("read", number), as torch's autograd has it; None where that is 0.

    >>> derivative(("tanh", ("read", 0)), 0)
    ('sub', ('number', 1.0), ('mul', ('tanh', ('read', 0)), ('tanh', ('read', 0))))
    """
    if body[0] == "read":
        return _ONE if body[1] == number else None
    if body[0] == "where":
        first, second = derivative(body[2], number), derivative(body[3], number)
        return None if first is second is None else ("where", body[1], first or _ZERO, second or _ZERO)
    if body[0] not in _FACTORS:  # coordinates, numbers, comparisons, whole quotients
        return None
    total = None
    for part, factor in zip(body[1:], _FACTORS[body[0]](body, *body[1:])):
        inner = derivative(part, number)
        if inner is None:
            continue
        term = factor if inner == _ONE else inner if factor == _ONE else ("mul", factor, inner)
        total = term if total is None else ("add", total, term)
    return total


def _sign(a: Expression, b: Expression, less: float, same: float = 0.0) -> Expression:
    """1 where a is greater than b, `less` where it is less."""
    below = ("where", ("lt", a, b), ("number", less), ("number", same))
    return ("where", ("gt", a, b), _ONE, below)

# SPDX-License-Identifier: Apache-2.0
"""The promise of an operator: which module parameter it serves, its index statement, its torch reference."""

from __future__ import annotations

import math
from typing import ClassVar

import torch

from ..errors import ScheduleError

OPERATORS: dict[str, Operator] = {}


class Operator:
    """One operator of a torch module whose `attribute` may be packed; see docs/add-an-operator.md.

    `statement` is an einsum with the packed operand first; `operands` names all of them, in order. `bias` holds the
    letters of what is added at the end, or None.
    """

    name: ClassVar[str]
    attribute: ClassVar[str] = "weight"
    statement: ClassVar[str | None]
    operands: ClassVar[tuple[str, ...]]
    bias: ClassVar[str | None] = None
    quick: ClassVar[bool] = False
    """Is the operand the module's input, and the kernel's answer the module's, but for their leading dimensions?

    Then a call may go past `inputs` and `output`, with its tensors bound beforehand, and `shape_rule` says its sizes.
    """

    in_place: ClassVar[bool] = False
    """Does the module stay, with the packed weight for its parameter? Then `runs` names its products' operator."""
    runs: ClassVar[str | None] = None
    stacks: ClassVar[bool] = False
    """Is the parameter a stack of matrices, [experts, rows, columns], that are read one at a time?"""

    @property
    def rank(self) -> int:
        """How many axes the packed operand has; `find` takes the operator that has as many as the format."""
        return len(self.statement.partition(",")[0])

    def matches(self, module: torch.nn.Module) -> bool:
        """Does this module go through the operator?"""
        raise NotImplementedError

    def refusal(self, module) -> str | None:
        """Why a module that matches cannot be served as it is, and what to do: the end of a sentence about it."""
        return None

    def refuses_format(self, format) -> str | None:
        """Why it cannot read a weight in this format, and which ones it can."""
        return None

    def refuses_shape(self, shape, format) -> str | None:
        """Why it cannot read a weight of this shape in a format that it can read."""
        return None

    def matrix(self, shape) -> tuple[int, int]:
        """The matrix that formats of two axes mean, of a parameter that has more."""
        return shape[0], math.prod(shape[1:])

    def has_bias(self, module) -> bool:
        return False

    def inputs(self, module, *args) -> tuple[list[torch.Tensor], tuple[int, ...]]:
        """The dense operands of one call (the bias last), and the shape of what the kernel answers."""
        raise NotImplementedError

    def extras(self, module) -> tuple[str, ...]:
        """Names of the module's tensors among the dense operands, in order; they come after the input."""
        return ("bias",) if self.has_bias(module) else ()

    def tokens(self, module, *args) -> int | None:
        """How many tokens a call brings to the product `sum_j w[i, j] * x[b, j]`; None where it is another product.

        The cost model, which the report and `allow_dense` ask, knows this one alone.
        """
        return None

    def shape_rule(self, module) -> tuple[int, list[int]]:
        """How many of the input's last sizes an answer has others for, and these.

        Input and answer may have more leading dimensions than the kernel, which takes them as one, or lack that one.
        Only where `quick` is true.
        """
        raise NotImplementedError

    def output(self, y: torch.Tensor, *args) -> torch.Tensor:
        """What the module answers, from what the kernel answers."""
        return y

    def answer(self, module, y: torch.Tensor, *args) -> torch.Tensor:
        """`output`, for an operator whose answer depends on the module's attributes too."""
        return self.output(y, *args)

    def direct(self, weight, module, *args) -> torch.Tensor:
        """What the module answers, from the packed weight, by torch's own operators: where `statement` is None."""
        raise NotImplementedError

    def eager(self, weight: torch.Tensor, module, *args) -> torch.Tensor:
        """The same in torch's own operators, with the dense weight."""
        raise NotImplementedError


def operator(cls):
    """Class decorator: make an operator known."""
    OPERATORS[cls.name] = cls()
    return cls


def candidates(module: torch.nn.Module, attribute: str) -> list[Operator]:
    """The operators that serve a module's parameter, in formats of some number of axes; the last registered first."""
    return [each for each in reversed(OPERATORS.values()) if each.attribute == attribute and each.matches(module)]


def find(module: torch.nn.Module, attribute: str, name: str, location, rank: int = 2) -> Operator:
    """The operator that serves a module's parameter in a format of `rank` axes.

    Raises `ScheduleError` with the parameter's name.
    """
    kind, found = type(module).__name__, candidates(module, attribute)
    for candidate in found:
        if reason := candidate.refusal(module):
            raise ScheduleError(f"'{name}': {kind} {reason}", location=location)
        if candidate.rank == rank:
            return candidate
    if found:
        known = " or ".join(map(str, sorted({each.rank for each in found})))
        raise ScheduleError(f"'{name}' of {kind} takes formats of {known} axes, not {rank}", location=location)
    served = ", ".join(f"'{o.attribute}' of {o.name}" for o in OPERATORS.values() if not o.in_place)
    raise ScheduleError(
        f"'{name}' belongs to {kind}, which has no sparse operator; there are: {served}", location=location
    )

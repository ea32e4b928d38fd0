# SPDX-License-Identifier: Apache-2.0
"""The promise of an operator: which module parameter it serves, its index statement, its torch reference."""

from __future__ import annotations

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
    statement: ClassVar[str]
    operands: ClassVar[tuple[str, ...]]
    bias: ClassVar[str | None] = None
    quick: ClassVar[bool] = False
    """Is the operand the module's input, and the kernel's answer the module's, but for their leading dimensions?

    Then a call may go past `inputs` and `output`, with its tensors bound beforehand, and `shape_rule` says its sizes.
    """

    def matches(self, module: torch.nn.Module) -> bool:
        """Does this module go through the operator?"""
        raise NotImplementedError

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

    def eager(self, weight: torch.Tensor, module, *args) -> torch.Tensor:
        """The same in torch's own operators, with the dense weight."""
        raise NotImplementedError


def operator(cls):
    """Class decorator: make an operator known."""
    OPERATORS[cls.name] = cls()
    return cls


def find(module: torch.nn.Module, attribute: str, name: str, location) -> Operator:
    """The operator that serves a module's parameter. Raises `ScheduleError` with the parameter's name."""
    for candidate in OPERATORS.values():
        if candidate.attribute == attribute and candidate.matches(module):
            return candidate
    served = ", ".join(f"'{o.attribute}' of {o.name}" for o in OPERATORS.values())
    raise ScheduleError(
        f"'{name}' belongs to {type(module).__name__}, which has no sparse operator; there are: {served}",
        location=location,
    )

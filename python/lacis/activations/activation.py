# SPDX-License-Identifier: Apache-2.0
"""The promise of an activation: its name, the numbers that it takes, torch's operator, the code of a kernel."""

from __future__ import annotations

import functools
import re
from typing import ClassVar

import torch

from ..errors import DataError

ACTIVATIONS: dict[str, Activation] = {}


class Activation:
    """A function of one element, which runs in one kernel with the product before it.

    `parameters` are the numbers that it takes after its name, in order, with their defaults: `leaky_relu(0.1)`. Both
    methods get them by name. They are compiled in.
    """

    name: ClassVar[str]
    parameters: ClassVar[dict[str, float]] = {}

    def eager(self, x: torch.Tensor, **parameters: float) -> torch.Tensor:
        """The same in torch's own operators, which gradients go through."""
        raise NotImplementedError

    def code(self, a, x: str, **parameters: float) -> str:
        """The name of the result for the value named `x`; `a` writes the operations, see `lacis.emit.arithmetic`."""
        raise NotImplementedError


def activation(cls):
    """Class decorator: make an activation known by its name. Raises `DataError` for a name that another one has."""
    if not re.fullmatch(r"[a-z_]\w*", cls.name):
        raise DataError(f"activation: '{cls.name}' is no name; take small letters, digits and '_'")
    known = ACTIVATIONS.get(cls.name)
    if known is not None:
        raise DataError(f"activation: '{cls.name}' is the name of {type(known).__name__} already; take another")
    ACTIVATIONS[cls.name] = cls()
    return cls


class ActivationCall:
    """An activation with its numbers. `text` is the same for the same function: names of kernels are made of it."""

    def __init__(self, activation: Activation, values: tuple[float, ...]):
        names = activation.parameters
        self._activation = activation
        self._values = {**names, **dict(zip(names, values))}
        numbers = ", ".join(repr(value) for value in self._values.values())
        self.text = f"{activation.name}({numbers})" if names else activation.name

    def eager(self, x: torch.Tensor) -> torch.Tensor:
        return self._activation.eager(x, **self._values)

    def code(self, a, x: str) -> str:
        return self._activation.code(a, x, **self._values)


@functools.lru_cache(maxsize=256)
def find_activation(text: str) -> ActivationCall:
    """The activation that a text names, `"relu"` or `"leaky_relu(0.1)"`. Raises `DataError` where there is none.

    >>> find_activation("leaky_relu").text, find_activation("leaky_relu(0.1)").text
    ('leaky_relu(0.01)', 'leaky_relu(0.1)')
    """
    found = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    name, numbers = found.groups() if found else (text, None)
    known = ACTIVATIONS.get(name)
    if known is None:
        raise DataError(f"no activation '{text}'; there are {', '.join(map(_usage, ACTIVATIONS.values()))}")
    try:
        values = tuple(float(number) for number in numbers.split(",")) if numbers and numbers.strip() else ()
    except ValueError:
        values = None
    if values is None or len(values) > len(known.parameters):
        takes = f"it is written '{_usage(known)}'" if known.parameters else "it takes no numbers"
        raise DataError(f"activation '{text}': {takes}")
    return ActivationCall(known, values)


def _usage(known: Activation) -> str:
    return known.name + (f"({', '.join(map(repr, known.parameters.values()))})" if known.parameters else "")

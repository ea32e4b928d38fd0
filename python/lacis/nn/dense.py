# SPDX-License-Identifier: Apache-2.0
"""The dense module that a sparse one took the place of, made anew."""

from __future__ import annotations

import dataclasses
import inspect

import torch

from ..operators import OPERATORS


@dataclasses.dataclass(frozen=True)
class Replaced:
    """What a dense module was: its class, the names of its attributes, those that the sparse one's hide, and the order
    of its parameters."""

    type: type
    attributes: tuple[str, ...]
    hidden: dict[str, object]
    parameters: tuple[str, ...]

    def in_order(self, given: tuple, named: dict) -> tuple:
        """The arguments of a call by position; raises `TypeError` as the dense module does."""
        bound = inspect.signature(self.type.forward).bind(None, *given, **named)
        return bound.args[1:]


def dense_module(sparse, weight: torch.nn.Parameter) -> torch.nn.Module:
    """A module of the dense one's class with this weight; all else is that of the sparse module, shared."""
    was, attribute = sparse._replaced, OPERATORS[sparse.operator].attribute
    dense = object.__new__(was.type)
    torch.nn.Module.__init__(dense)
    for name in was.attributes:
        dense.__dict__[name] = was.hidden[name] if name in was.hidden else sparse.__dict__[name]
    dense.training = sparse.training
    for name in was.parameters:
        dense.register_parameter(name, weight if name == attribute else sparse._parameters[name])
    for name, buffer in sparse._buffers.items():
        dense.register_buffer(name, buffer, persistent=name not in sparse._non_persistent_buffers_set)
    for name, child in sparse._modules.items():
        if name != attribute:
            dense.add_module(name, child)
    return dense

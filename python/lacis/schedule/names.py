# SPDX-License-Identifier: Apache-2.0
"""The names in a model: parameters with their aliases and shapes, modules with their classes."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Names:
    """`parameters`: name to (all names of the same tensor, shape); `modules`: path to class name ("" is the model)."""

    parameters: dict[str, tuple[tuple[str, ...], tuple[int, ...]]]
    modules: dict[str, str]

    @staticmethod
    def of(model) -> Names:
        named = dict(model.named_parameters(remove_duplicate=False))
        aliases: dict[int, list[str]] = {}
        for name, parameter in named.items():
            aliases.setdefault(id(parameter), []).append(name)
        parameters = {name: (tuple(aliases[id(parameter)]), _shape(parameter)) for name, parameter in named.items()}
        modules = {path: type(module).__name__ for path, module in model.named_modules(remove_duplicate=False)}
        return Names(parameters, modules)


def _shape(parameter) -> tuple[int, ...]:
    try:
        return tuple(parameter.shape)
    except RuntimeError:  # a lazy parameter has no shape yet
        return ()

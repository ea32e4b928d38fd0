# SPDX-License-Identifier: Apache-2.0
"""The names in a model: parameters with their aliases and shapes, modules with their classes."""

from __future__ import annotations

import dataclasses

from torch.nn.utils import parametrize, prune


@dataclasses.dataclass(frozen=True)
class Names:
    """`parameters`: name to (all names of the same tensor, shape); `modules`: path to class name ("" is the model).

    `refused`: name of what is a parameter no more, and is below that, to what to do about it.
    """

    parameters: dict[str, tuple[tuple[str, ...], tuple[int, ...]]]
    modules: dict[str, str]
    refused: dict[str, str]

    def refusal(self, name: str) -> str | None:
        """Why a name cannot be scheduled as the model is, and what to do."""
        for start, reason in self.refused.items():
            if name == start or name.startswith((f"{start}.", f"{start}_orig", _inside(start))):
                return reason
        return None

    @staticmethod
    def of(model) -> Names:
        named = dict(model.named_parameters(remove_duplicate=False))
        aliases: dict[int, list[str]] = {}
        for name, parameter in named.items():
            aliases.setdefault(id(parameter), []).append(name)
        parameters = {name: (tuple(aliases[id(parameter)]), _shape(parameter)) for name, parameter in named.items()}
        modules = {path: type(module).__name__ for path, module in model.named_modules(remove_duplicate=False)}
        refused = {}
        for path, module in model.named_modules(remove_duplicate=False):
            refused.update({f"{path}.{name}" if path else name: reason for name, reason in _refused(module)})
        return Names(parameters, modules, refused)


def _refused(module):
    """The module's attributes that were parameters, each with what to do about it."""
    for name, child in module._modules.items():
        if getattr(child, "is_packed_weight", False):
            yield name, "is packed already; call restore() on the schedule that did it, or lacis.densify(model)"
    if parametrize.is_parametrized(module):
        for name in module.parametrizations:
            how = f"torch.nn.utils.parametrize.remove_parametrizations(module, '{name}')"
            yield name, f"is parametrised; call {how} first"
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, prune.BasePruningMethod):
            name = hook._tensor_name
            how = f"torch.nn.utils.prune.remove(module, '{name}')"
            left = "which leaves zeros, and those are not stored; lacis.take_masks(model) does it and answers the masks"
            yield name, f"is pruned by torch; call {how} first, {left}"


def _inside(name: str) -> str:
    """What the names of a parametrised parameter's own tensors begin with."""
    path, dot, attribute = name.rpartition(".")
    return f"{path}{dot}parametrizations.{attribute}"


def _shape(parameter) -> tuple[int, ...]:
    try:
        return tuple(parameter.shape)
    except RuntimeError:  # a lazy parameter has no shape yet
        return ()

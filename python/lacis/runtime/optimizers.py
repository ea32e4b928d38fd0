# SPDX-License-Identifier: Apache-2.0
"""Warns of optimizers that hold dense parameters which a build empties: they would train nothing."""

from __future__ import annotations

import gc
import sys
import types
import warnings

import torch

from ..errors import user_location

_MOST = 3  # names in a warning; the rest is a number


def warn_of_optimizers(built) -> None:
    """A `UserWarning` for each optimizer that was made before the build, with the names of what it holds."""
    built = [each for each in built if not each.forwards]  # of others the dense parameter stays
    if not any(_is_held(each.captured) for each in built) or not _optimizers():
        return
    gc.collect()  # one that nobody has any more may only wait for it
    names = {id(each.captured.parameter): each.name for each in built}
    for optimizer in _optimizers():
        held = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
        found = [names[number] for number in held if number in names]
        if found:
            listed = ", ".join(f"'{name}'" for name in found[:_MOST])
            more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
            message = (
                f"{type(optimizer).__name__} was made before build() and holds the dense parameters of {listed}{more}, "
                "which build() empties: it would not train the packed weights; make the optimizer after build(), of "
                "model.parameters(), or have schedule.attach(optimizer) give it the packed values"
            )
            warnings.warn_explicit(message, UserWarning, *(user_location() or ("lacis", 1)))


def _is_held(captured) -> bool:
    """Does anybody but the model hold the parameter? To look for optimizers among all objects takes a while."""
    holder = types.SimpleNamespace(parameter=object())
    alone = sys.getrefcount(holder.parameter)
    return sys.getrefcount(captured.parameter) > alone + len(captured.owners)


def _optimizers() -> list[torch.optim.Optimizer]:
    return [found for found in gc.get_objects() if issubclass(type(found), torch.optim.Optimizer)]

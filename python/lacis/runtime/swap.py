# SPDX-License-Identifier: Apache-2.0
"""Puts sparse modules into a model and takes them out again, as a whole or not at all."""

from __future__ import annotations

import contextlib

import torch

from ..errors import ScheduleError
from ..nn import TakesDenseState
from ..nn.doors import stay_visible


class Undo(contextlib.ExitStack):
    """What takes back each change, noted before it is made; `close` runs it, last one first."""

    def will_set(self, holder: dict, *names: str) -> None:
        """These entries of a dictionary are about to change; they are there."""
        for name in names:
            self.callback(holder.__setitem__, name, holder[name])

    def will_fill(self, holder: dict) -> None:
        """A dictionary is about to get more entries."""
        self.callback(_refill_entries, holder, dict(holder))

    def will_assign(self, holder, name: str) -> None:
        """This attribute is about to change."""
        self.callback(setattr, holder, name, getattr(holder, name))

    def will_swap(self, parameter: torch.nn.Parameter) -> None:
        """The data and the gradient of a parameter are about to be others."""
        self.callback(_refill, parameter, parameter.data, parameter.grad, parameter.requires_grad)


def as_a_whole(change):
    """What `change(undo)` answers; where it raises, or is interrupted, all that it did is taken back.

    >>> found = [1]
    >>> def change(undo):
    ...     undo.callback(found.pop)
    ...     found.append(2)
    ...     raise KeyboardInterrupt
    >>> with contextlib.suppress(KeyboardInterrupt):
    ...     as_a_whole(change)
    >>> found
    [1]
    """
    undo = Undo()
    try:
        return change(undo)
    except BaseException:
        undo.close()
        raise


def _refill_entries(holder: dict, entries: dict) -> None:
    holder.clear()
    holder.update(entries)


def _refill(parameter, data, grad, requires_grad) -> None:
    parameter.grad = None  # one of another shape would not let the data change
    parameter.data = data
    parameter.requires_grad_(requires_grad)
    parameter.grad = grad


def swap_in(model, built, undo: Undo) -> None:
    """Put the sparse modules into the model and empty the dense parameters."""
    for each in built:
        if each.forwards:
            for forward in each.forwards:
                undo.will_fill(forward.module.__dict__)
                forward.module.__dict__["forward"] = forward
                undo.will_fill(forward.module._forward_pre_hooks)
                forward.module.register_forward_pre_hook(stay_visible)  # a fused encoder layer would pass it by
            continue
        for owner, (_, sparse) in zip(each.captured.owners, each.modules):
            if owner.operator.in_place:
                put_in_place(owner.module, owner.attribute, each.weight, undo)
                continue
            for path in owner.paths:
                put(model, path, sparse, undo)
        parameter = each.captured.parameter
        empty = torch.empty(0, dtype=parameter.dtype, device=parameter.device)
        undo.will_swap(parameter)
        parameter.grad = None
        parameter.data = empty


def register_edges(model, edges, undo: Undo) -> list:
    """Hook the edges in; answers the hooks' handles."""
    handles = []
    for edge in edges:
        path = edge.name.partition(":")[0]
        try:
            module = model.get_submodule(path)
        except AttributeError:
            raise ScheduleError(f"'{path}' is no module of the model any more", location=edge.location) from None
        undo.will_fill(module._forward_hooks)
        undo.will_fill(module._forward_pre_hooks)
        handles.append(edge.register(model))
    return handles


def swap_out(model, built, undo: Undo) -> None:
    """The original modules back, their parameters refilled with the present values."""
    for each in built:
        each.refresh()
    dense = [(each, each.weight.to_dense().detach()) for each in built]
    for each, values in dense:
        if each.forwards:
            take_forwards(each.forwards, values, undo)
            continue
        parameter = each.captured.parameter
        undo.will_swap(parameter)
        parameter.grad = None
        parameter.data = values.reshape(each.captured.site.shape)
        parameter.requires_grad_(each.weight.requires_grad)
        for owner, (original, sparse) in zip(each.captured.owners, each.modules):
            if owner.operator.in_place:
                put_back(owner.module, owner.attribute, parameter, undo)
                continue
            _give_back(original, sparse, undo)
            for path in owner.paths:
                put(model, path, original, undo)


def take_forwards(forwards, values: torch.Tensor, undo: Undo) -> None:
    """The modules' own forward again, on the entries of their dense Parameter, which stayed."""
    parameter = forwards[0].weight
    undo.will_swap(parameter)
    parameter.data = values.reshape(parameter.shape)
    for forward in forwards:
        undo.will_fill(forward.module.__dict__)
        del forward.module.__dict__["forward"]
        hooks = forward.module._forward_pre_hooks
        undo.will_fill(hooks)
        for key in [key for key, hook in hooks.items() if hook is stay_visible]:
            del hooks[key]


def _give_back(original, sparse, undo: Undo) -> None:
    """What the model's user may have changed meanwhile: mode, other parameters and buffers."""
    for module in original.modules():
        undo.will_assign(module, "training")
    original.train(sparse.training)
    for mine, theirs in ((original._parameters, sparse._parameters), (original._buffers, sparse._buffers)):
        for name in mine.keys() & theirs.keys():
            undo.will_set(mine, name)
            mine[name] = theirs[name]


def put_in_place(module, attribute: str, weight, undo: Undo) -> None:
    """A packed weight in place of a module's own parameter."""
    _will_exchange(module, undo)
    TakesDenseState.put_in(module, attribute, weight)


def put_back(module, attribute: str, parameter, undo: Undo) -> None:
    """A parameter in place of a module's packed weight."""
    _will_exchange(module, undo)
    TakesDenseState.put_back(module, attribute, parameter)


def _will_exchange(module, undo: Undo) -> None:
    for holder in (module._parameters, module._modules, module._load_state_dict_pre_hooks):
        undo.will_fill(holder)


def put(model, path: str, module: torch.nn.Module, undo: Undo) -> None:
    """Another module at a path of the model."""
    parent, _, name = path.rpartition(".")
    holder = model.get_submodule(parent)._modules
    undo.will_set(holder, name)
    holder[name] = module

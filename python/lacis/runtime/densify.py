# SPDX-License-Identifier: Apache-2.0
"""`lacis.densify`: the dense modules back in a model that no schedule stands behind."""

from __future__ import annotations

import torch

from ..nn import SparseModule, dense_module
from .edges import Edge
from .swap import as_a_whole, put, put_back, take_forwards


def densify(model: torch.nn.Module) -> torch.nn.Module:
    """Put dense modules with the present values in place of the sparse ones, and answer the model.

    For copies and files of built models; where the schedule is there, `Schedule.restore` also gives the original
    parameters back. The dense weights are new Parameters, tied ones one, but for those that stayed by `master=`;
    hooks, biases and buffers are those of the sparse modules. Activations and gradients are packed no more. A model
    without sparse modules stays as it is. Raises `DataError` where a weight holds no numbers, and changes nothing then.

    >>> import copy, lacis
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 2))
    >>> s = lacis.create_schedule(model, target="eager")
    >>> _ = s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    >>> densify(copy.deepcopy(s.build()))
    Sequential(
      (0): Linear(in_features=4, out_features=2, bias=True)
    )
    """
    weights: dict[int, torch.nn.Parameter] = {}
    made: dict[int, torch.nn.Module] = {}
    paths = [
        (path, each) for path, each in model.named_modules(remove_duplicate=False) if isinstance(each, SparseModule)
    ]
    for _, each in paths:
        if id(each) not in made:
            made[id(each)] = _dense(each, weights)
    stayed = [
        (module, name, _parameter(child, weights))
        for module in model.modules()
        if not isinstance(module, SparseModule)
        for name, child in module._modules.items()
        if getattr(child, "is_packed_weight", False)
    ]

    masters = [vars(module)["forward"] for module in model.modules() if hasattr(vars(module).get("forward"), "master")]
    followed: dict[int, list] = {}
    for forward in masters:
        forward.refresh()
        followed.setdefault(id(forward.master), []).append(forward)

    def change(undo):
        for module in model.modules():
            for hooks in (module._forward_hooks, module._forward_pre_hooks):
                undo.will_fill(hooks)
                for number in [number for number, hook in hooks.items() if _is_edge(hook)]:
                    del hooks[number]
        for path, each in paths:
            if path:
                put(model, path, made[id(each)], undo)
        for forwards in followed.values():
            take_forwards(forwards, forwards[0].master.weight.to_dense().detach(), undo)
        for module, name, parameter in stayed:
            put_back(module, name, parameter, undo)
        return made.get(id(model), model)

    return as_a_whole(change)


def _dense(sparse: SparseModule, weights: dict[int, torch.nn.Parameter]) -> torch.nn.Module:
    return dense_module(sparse, _parameter(sparse.weight, weights))


def _parameter(weight, weights: dict[int, torch.nn.Parameter]) -> torch.nn.Parameter:
    if id(weight) not in weights:
        weights[id(weight)] = torch.nn.Parameter(weight.to_dense().detach(), weight.requires_grad)
    return weights[id(weight)]


def _is_edge(hook) -> bool:
    return isinstance(getattr(hook, "__self__", None), Edge)

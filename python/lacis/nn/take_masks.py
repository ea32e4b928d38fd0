# SPDX-License-Identifier: Apache-2.0
"""`lacis.take_masks`: the masks of models that another tool pruned, and the wrappers gone."""

from __future__ import annotations

import dataclasses

import torch
from torch.nn.utils import parametrize, prune

from ..errors import DataError


def take_masks(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The masks that pruning left in a model, by the parameter's name; what applied them is removed.

    It knows `torch.nn.utils.prune`, the weight sparsifiers of `torch.ao.pruning` and the mask buffers of NVIDIA's ASP
    (`__weight_mma_mask`). A mask is a bool tensor of the parameter's shape on its device: True where an entry is kept,
    zeros that it keeps included. Each parameter is then the plain one, the same object as before for optimizers, with
    zeros where the mask is False. A model without masks answers an empty dict.

    >>> import lacis
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    >>> _ = prune.l1_unstructured(model[0], "weight", amount=0.75)
    >>> masks = take_masks(model)
    >>> s = lacis.create_schedule(model, target="eager")
    >>> for name, mask in masks.items():
    ...     _ = s[name].sparsify(mask).set_format(lacis.Csr)
    >>> s.build()[0].weight.values.shape
    torch.Size([8])

    Raises `DataError`, and changes nothing, for a mask that is not of 0 and 1 and the parameter's shape, for a
    parametrization beside that of a mask, and for a parameter that several modules mask differently.
    """
    found = [each for path, module in model.named_modules() for each in _masks_of(path, module)]
    checked = [(each, _checked(each)) for each in found]
    _require_one_mask(checked)
    for each, mask in checked:
        each.remove(mask)
    return {each.name: mask for each, mask in checked}


@dataclasses.dataclass(frozen=True)
class _Mask:
    """A mask at a module, and how it is taken off."""

    path: str
    module: torch.nn.Module
    attribute: str
    parameter: torch.nn.Parameter
    mask: torch.Tensor

    @property
    def name(self) -> str:
        return f"{self.path}.{self.attribute}" if self.path else self.attribute

    def remove(self, mask: torch.Tensor) -> None:
        raise NotImplementedError


class _Pruned(_Mask):
    """Of torch.nn.utils.prune."""

    def remove(self, mask):
        prune.remove(self.module, self.attribute)
        _keep(self.parameter, mask)


class _Parametrized(_Mask):
    """Of torch.ao.pruning."""

    def remove(self, mask):
        parametrize.remove_parametrizations(self.module, self.attribute, leave_parametrized=True)
        _keep(self.parameter, mask)


class _Buffer(_Mask):
    """Of ASP, which writes zeros into the parameter itself."""

    def remove(self, mask):
        for kind in ("mask", "pruned_p"):
            self.module._buffers.pop(f"__{self.attribute}_mma_{kind}", None)
        _keep(self.parameter, mask)


@torch.no_grad()
def _keep(parameter, mask) -> None:
    parameter.masked_fill_(~mask, 0)


def _masks_of(path: str, module):
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, prune.BasePruningMethod):
            name = hook._tensor_name
            yield _Pruned(path, module, name, getattr(module, f"{name}_orig"), getattr(module, f"{name}_mask"))
    if parametrize.is_parametrized(module):
        for name, steps in module.parametrizations.items():
            yield from _of_parametrizations(path, module, name, steps)
    for name, parameter in module._parameters.items():
        mask = module._buffers.get(f"__{name}_mma_mask")
        if mask is not None:
            yield _Buffer(path, module, name, parameter, mask)


def _of_parametrizations(path: str, module, name: str, steps):
    masks = [each for each in steps if type(each).__module__.startswith("torch.ao.pruning") and hasattr(each, "mask")]
    if not masks:
        return
    if len(steps) > 1:
        raise DataError(
            f"'{path}.{name}' has {len(steps)} parametrizations, of which one is a mask; remove the others first by "
            f"torch.nn.utils.parametrize.remove_parametrizations(module, '{name}')"
        )
    mask, original = masks[0].mask, steps.original
    if mask.ndim == 1 and original.ndim > 1:  # one of whole rows
        mask = mask.reshape(-1, *[1] * (original.ndim - 1)).expand_as(original)
    yield _Parametrized(path, module, name, original, mask)


def _checked(each: _Mask) -> torch.Tensor:
    mask, parameter = each.mask, each.parameter
    if mask.shape != parameter.shape or mask.device != parameter.device:
        raise DataError(
            f"the mask of '{each.name}' has shape {list(mask.shape)} on {mask.device}, the parameter "
            f"{list(parameter.shape)} on {parameter.device}"
        )
    if mask.dtype != torch.bool and not bool(((mask == 0) | (mask == 1)).all()):
        raise DataError(f"the mask of '{each.name}' holds other numbers than 0 and 1; what would they keep?")
    return mask.detach().bool().clone()


def _require_one_mask(checked) -> None:
    known: dict[int, tuple] = {}
    for each, mask in checked:
        name, other = known.setdefault(id(each.parameter), (each.name, mask))
        if not torch.equal(other, mask):
            raise DataError(f"'{name}' and '{each.name}' are one parameter with two masks; prune it at one of them")

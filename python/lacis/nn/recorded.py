# SPDX-License-Identifier: Apache-2.0
"""What calls that autograd records in eager mode must know: whether they may be, and which gradients are asked for."""

from __future__ import annotations

import torch

from ..errors import DataError, user_location
from ..patterns.transforms import is_transformed


def takes_part(tensor: torch.Tensor) -> bool:
    """Does the tensor require a gradient, at any level of the transforms that it is in?"""
    while not tensor.requires_grad:
        if not torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return False
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return True


def entries_alone(values: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
    """The values as a function of the entries: a tangent of padding is none."""
    return values if valid is None else torch.where(valid, values, 0)


def may_record(device: torch.device) -> bool:
    """Is this an eager call that no transform of torch looks into, outside of autocast regions?"""
    try:
        return not (is_transformed() or torch.is_autocast_enabled(device.type))
    except (AttributeError, RuntimeError):  # no torch device, or one without autocast: refused by name elsewhere
        return False


def asked(ctx, needs) -> list[bool]:
    """Which of the gradients that the tensors need does this backward pass ask for?

    `torch.autograd.grad` and `backward(inputs=...)` name some tensors; what autograd noted in the forward pass is all.
    """
    if sum(needs) < 2:
        return needs
    return [need and _runs(node) for need, (node, _) in zip(needs, ctx.next_functions)]


class Asked:
    """`asked` for the calls of one layer, most of which are told what the one before heard.

    The answer costs 3 µs, and 20 µs more for each leaf that `torch.autograd.grad` names, for torch raises an error
    there. Where a pass asks for all gradients, the next `TAKEN` are taken to do so too, save those that record a graph
    of their own, and `anew` (a CUDA graph would repeat what it holds). A gradient that nobody asked for is computed in
    vain, and torch drops it.
    """

    TAKEN = 15

    def __init__(self):
        self._taken = 0

    def __call__(self, ctx, needs, anew: bool = False):
        if self._taken and not anew and not torch.is_grad_enabled():
            self._taken -= 1
            return needs
        found = asked(ctx, needs)
        self._taken = self.TAKEN if all(got == need for got, need in zip(found, needs)) else 0
        return found


def _runs(node) -> bool:
    try:
        return torch._C._will_engine_execute_node(node)
    except RuntimeError:  # torch cannot say it of a leaf that is asked for
        return True


def revision(parts) -> int:
    """A number that grows with each pattern that a weight of these parts is given."""
    total = 0
    for part in parts:
        total += part.revision
    return total


def require_pattern_in(node, module) -> None:
    """Refuse the backward pass of a call, at this node, where the module's weight has another pattern by then."""
    parts = module.weight._parts()
    then = revision(parts)
    node.register_prehook(lambda _: require_pattern(module, parts, then))


def require_pattern(module, parts, then: int) -> None:
    """Raise `DataError` in a backward pass, unless the weight has the pattern of the revision `then`, of the forward.

    The kernels of the gradients would walk arrays of the one with values of the other.
    """
    if revision(parts) != then:
        raise DataError(
            f"{module.operator}: the weight {list(module.weight.shape)} was given another pattern between the forward "
            "and the backward pass; run backward before set_packed() or load_state_dict() changes the pattern",
            location=user_location() or module.location,
        )

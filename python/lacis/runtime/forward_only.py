# SPDX-License-Identifier: Apache-2.0
"""Results that have no gradient say so when one is asked for, not by silence."""

from __future__ import annotations

import torch

from ..nn.recorded import takes_part
from ..packing import PackedTensor
from .gradients import BackwardError


class _ForwardOnly(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(semiring, result, *inputs):
        return result.view_as(result)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.semiring = inputs[0]

    @staticmethod
    def backward(ctx, grad):
        raise BackwardError(
            f"einsum: semiring '{ctx.semiring}' is forward only, no gradient was computed; run it under torch.no_grad()"
        )


def forward_only(result, call):
    """The result of a call, computed without gradients, as a function of the tensors that require one."""
    inputs = [tensor for tensor in call.tensors if takes_part(tensor)]
    mark = lambda tensor: _ForwardOnly.apply(call.semiring, tensor, *inputs)
    if isinstance(result, PackedTensor):
        return PackedTensor(result.pattern, {name: mark(t) for name, t in result.values_by_part.items()})
    return mark(result)

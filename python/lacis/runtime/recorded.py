# SPDX-License-Identifier: Apache-2.0
"""Calls that autograd records in eager mode: the gradients of the operator, in less time on the host.

What `torch.library.register_autograd` records takes lists of tensors apart and together in Python, entry by entry.
"""

from __future__ import annotations

import torch

from ..nn.recorded import asked
from . import gradients

_OTHERS = 5  # arguments before the tensors


class Recorded(torch.autograd.Function):
    """`apply(inference, key, sizes, operands, storage, *tensors)`: numbers of operands and of storage arrays.

    The tensors are those, and the arrays that gradients walk beside them. `inference` is the overload for inference,
    and `sizes` what it takes: the number of sizes of the output, these, and those of the packed operand.
    """

    @staticmethod
    def forward(ctx, inference, key, sizes, operands, storage, *tensors):
        count = operands + storage
        needs, packed_shape = ctx.needs_input_grad[_OTHERS:], sizes[1 + sizes[0] :]
        gradients.keep(ctx, tensors[:count], tensors[count:], key, packed_shape, needs)
        ctx.operands, ctx.count, ctx.others = operands, count, len(tensors) - count
        return inference(list(tensors[:count]), sizes, key)

    @staticmethod
    def backward(ctx, grad):
        needs = asked(ctx, ctx.needs_input_grad[_OTHERS:])
        found = gradients.differentiate(ctx, grad, needs[: ctx.operands], needs[ctx.operands : ctx.count])
        return *([None] * _OTHERS), *found[0], *found[1], *([None] * ctx.others)

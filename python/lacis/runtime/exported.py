# SPDX-License-Identifier: Apache-2.0
"""Autograd and autocast of `einsum.exported`, the overload of graphs that leave Python, see python/ops/einsum.cpp."""

from __future__ import annotations

import torch

from . import gradients


def register() -> None:
    """Record gradients of the overload as of the one that has companions."""
    torch.library.register_autograd("lacis::einsum.exported", _backward, setup_context=_setup_context)


def _setup_context(ctx, inputs, output) -> None:
    tensors, ctx.operands, _, key, packed_shape = inputs
    gradients.keep(ctx, tensors, (), key, packed_shape, ctx.needs_input_grad)


def _backward(ctx, grad):
    needs, *rest = ctx.needs_input_grad
    found = gradients.differentiate(ctx, grad, needs[: ctx.operands], needs[ctx.operands :])
    return [*found[0], *found[1]], *(None for _ in rest)

# SPDX-License-Identifier: Apache-2.0
"""The dense gradient of a weight that a product does not store whole: zeros that pass it on."""

from __future__ import annotations

import torch


class Probe(torch.autograd.Function):
    """Zeros in the shape of a product, whose gradient in `leaf` is that of the product in its packed operand."""

    @staticmethod
    def forward(ctx, leaf, dtype, statement, shape, *dense):
        ctx.statement, ctx.shape = statement, leaf.shape
        ctx.save_for_backward(*dense)
        return leaf.new_zeros((), dtype=dtype).expand(shape)

    @staticmethod
    def backward(ctx, arrived):
        terms, output = ctx.statement.split("->")
        own, *others = terms.split(",")
        dense = [tensor.to(arrived.dtype) for tensor in ctx.saved_tensors]
        found = torch.einsum(f"{','.join([*others, output])}->{own}", *dense, arrived)
        return found.reshape(ctx.shape), None, None, None, *(None for _ in dense)


class Join(torch.autograd.Function):
    """A product as it is, whose gradient reaches a `Probe` of it too."""

    @staticmethod
    def forward(ctx, product, zeros):
        return product.view_as(product)

    @staticmethod
    def backward(ctx, arrived):
        return arrived, arrived

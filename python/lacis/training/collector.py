# SPDX-License-Identifier: Apache-2.0
"""Collects the gradient of places that hold nothing: one more product in the backward pass before an update."""

from __future__ import annotations

import torch

from ..capture import parse_statement
from ..errors import DataError
from ..operators import OPERATORS
from ..sparsifiers import Candidates
from ..sparsifiers.choose import among, blocked, hashed, keep_largest
from ..sparsifiers.entries_first import indices


class Collector:
    """The gradient of a weight at all its places, summed up over the backward passes while it is armed."""

    def __init__(self, layer, policy):
        self.layer, self.share = layer, getattr(policy, "candidates", None)
        self._hooks: list = []
        self._leaf: torch.Tensor | None = None

    def arm(self) -> None:
        """From the next forward pass on, until the update."""
        if self._hooks:
            return
        for module in self.layer.modules:
            self._hooks.append(module.register_forward_hook(self._on_forward, prepend=True))

    def disarm(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._leaf = [], None

    def _on_forward(self, module, args, y):
        if not torch.is_grad_enabled():
            return None
        operator, weight = OPERATORS[module.operator], self.layer.weight
        if self._leaf is None:
            zero = torch.zeros((), dtype=weight.dtype, device=weight.device)
            self._leaf = zero.expand(weight.shape).requires_grad_()
        dense, shape = operator.inputs(module, *args)
        dense = dense[: len(operator.operands) - 1]  # without the bias
        zeros = _Probe.apply(self._leaf, operator.statement, shape, *(each.detach() for each in dense))
        return y + operator.output(zeros.to(y.dtype), *args)

    def found(self, view, group=None) -> Candidates:
        """The gradient at the candidates, the mean over the ranks of `group`. Raises `DataError` where none arrived."""
        if self._leaf is None or self._leaf.grad is None:
            raise DataError(
                f"'{self.layer.name}': no gradient of its empty places has arrived; between the step before an update "
                "and the update there must be a forward and a backward pass in training"
            )
        grad = self._leaf.grad
        if group is not None:
            grad = grad.clone()
            torch.distributed.all_reduce(grad, group=group)
            grad /= torch.distributed.get_world_size(group)
        positions = view.empty()
        if self.share is not None:
            count = round(self.share * len(positions))
            keys = hashed(view.total, view.seed + 2, positions.device)
            chosen = keep_largest(among(keys, positions), count)
            positions = positions[indices(chosen, count)]
        rows = grad.reshape(-1) if view.block is None else blocked(grad, view.block).reshape(view.total, -1)
        return Candidates(positions, rows[positions])


class _Probe(torch.autograd.Function):
    """Zeros in the shape of a product, whose gradient in the weight is that of the product."""

    @staticmethod
    def forward(ctx, leaf, statement, shape, *dense):
        ctx.statement = statement
        ctx.save_for_backward(*dense)
        return leaf.new_zeros(()).expand(shape)

    @staticmethod
    def backward(ctx, arrived):
        (own, *terms), output = parse_statement(ctx.statement)
        text = ",".join("".join(term) for term in [*terms, output])
        dense = [tensor.to(arrived.dtype) for tensor in ctx.saved_tensors]
        found = torch.einsum(f"{text}->{''.join(own)}", *dense, arrived)
        return found, None, None, *(None for _ in dense)

# SPDX-License-Identifier: Apache-2.0
"""Collects the gradient of places that hold nothing: one more product in the backward pass before an update."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..nn import Probe
from ..operators import OPERATORS
from ..sparsifiers import Candidates
from ..sparsifiers.choose import among, blocked, keep_largest
from ..sparsifiers.entries_first import indices


class Collector:
    """The gradient of a weight at all its places, summed up over the backward passes while it is armed."""

    def __init__(self, layer, policy):
        for module in layer.modules:
            if OPERATORS[module.operator].statement is None:
                raise DataError(
                    f"'{layer.name}': {type(policy).__name__} reads the gradient of empty places, which "
                    f"'{module.operator}' does not compute; take grow='random', or lacis.Magnitude(lacis.Ramp(...))"
                )
        self.layer, self.share = layer, getattr(policy, "candidates", None)
        self._leaf: torch.Tensor | None = None

    def arm(self) -> None:
        """From the next forward pass on, until the update."""
        self._leaf = self._zeros()
        self._have(self)

    def disarm(self) -> None:
        self._have(None)
        self._leaf = None

    def _have(self, collector) -> None:
        """Tell all that multiplies with the weight: its modules, and what runs the products that a model writes out."""
        for module in self.layer.modules:
            module.collector = collector
        self.layer.weight._products.have(collector)

    def _zeros(self) -> torch.Tensor:
        weight = self.layer.weight
        return torch.zeros((), dtype=weight.dtype, device=weight.device).expand(weight.shape).requires_grad_()

    def watch(self, module, args, y):
        """What the module answers, with zeros added through which the gradient of all places passes."""
        operator = OPERATORS[module.operator]
        if not torch.compiler.is_compiling() and self._leaf.device != y.device:
            self._leaf = self._zeros()
        dense, shape = operator.inputs(module, *args)
        dense = dense[: len(operator.operands) - 1]  # without the bias
        zeros = Probe.apply(
            self._leaf, self._leaf.dtype, operator.statement, tuple(shape), *(each.detach() for each in dense)
        )
        return y + operator.answer(module, zeros.to(y.dtype), *args)

    def arrived(self, group=None) -> torch.Tensor:
        """The gradient at all places, the mean over the ranks of `group`. Raises `DataError` where none arrived."""
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
        return grad

    def candidates(self, grad: torch.Tensor, view) -> Candidates:
        """What may grow, by the gradient at all places."""
        rows = grad.reshape(-1) if view.block is None else blocked(grad, view.block).reshape(view.total, -1)
        return Candidates(rows, view, None if self.share is None else lambda: self._some(view))

    def _some(self, view) -> torch.Tensor:
        """The share of the empty places that the seed chooses for this update."""
        positions = view.empty()
        count = round(self.share * len(positions))
        return positions[indices(keep_largest(among(view.keys(view.total, 2), positions), count), count)]

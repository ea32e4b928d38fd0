# SPDX-License-Identifier: Apache-2.0
"""Sparsifiers that look at what a layer is given: `Schedule.calibrate` shows it to them."""

from __future__ import annotations

import dataclasses

import torch

from ..errors import ScheduleError
from .base import Sparsifier


@dataclasses.dataclass
class Inputs:
    """What a layer was given: over all tokens, the squares of each feature summed up, and, where `wants_gram`, the
    products of all pairs of features; both float32, or wider where the inputs are."""

    wants_gram: bool = False
    count: int = 0
    squares: torch.Tensor | None = None  # [features]
    gram: torch.Tensor | None = None  # [features, features]

    def add(self, x: torch.Tensor) -> None:
        """Tokens more, [tokens, features]."""
        x = x.detach().to(torch.promote_types(x.dtype, torch.float32))
        self.count += len(x)
        self.squares = x.square().sum(0) + (0 if self.squares is None else self.squares)
        if self.wants_gram:
            self.gram = x.T @ x + (0 if self.gram is None else self.gram)

    @property
    def norms(self) -> torch.Tensor:
        """The Euclidean norm of each feature over all tokens, [features]."""
        return self.squares.sqrt()


class Calibrated(Sparsifier):
    """Base of sparsifiers with `solve(tensor, inputs)`, which answers a mask and the tensor that goes with it.

    `inputs` are the `Inputs` of the layer. One of your own:

    >>> import lacis, torch
    >>> class Used(Calibrated):
    ...     def solve(self, tensor, inputs):
    ...         return (inputs.norms > 0).expand(tensor.shape), tensor
    >>> s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(3, 2)), target="eager")
    >>> handle = s["0.weight"].sparsify(Used()).set_format(lacis.Csr)
    >>> s.calibrate([torch.tensor([[1.0, 0.0, 2.0]])])
    >>> _ = s.build()
    >>> handle.packed.pattern.to_mask().tolist()
    [[True, False, True], [True, False, True]]

    A sparsifier that also has a mask of its own need not be one: any `Sparsifier` may have such a `solve`, and goes by
    its mask where nobody calibrates.
    """

    def solve(self, tensor: torch.Tensor, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
        """bool of the shape of `tensor`, True where an entry is kept, and the tensor whose entries they are."""
        raise NotImplementedError(f"'{type(self).__name__}' has no solve(self, tensor, inputs)")

    def mask(self, tensor):
        raise ScheduleError(
            f"{type(self).__name__} chooses by what the layer is given; call s.calibrate(batches) first"
        )

# SPDX-License-Identifier: Apache-2.0
"""A sparsifier of the gradient of packed values: what it drops is 0, and storage stays."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..packing import PackedTensor


class KeptGradient:
    """The hook of a part's values. The sparsifier sees the gradient as a tensor of the weight's shape, 0 where nothing
    is stored."""

    def __init__(self, part, sparsifier):
        self._part, self._sparsifier = part, sparsifier
        self._hook()

    def _hook(self) -> None:
        self._values = self._part.values
        if self._values.requires_grad:
            self._values.register_hook(self)

    def follow(self) -> None:
        """Hook the values of today; raises `DataError` where those of a call are others than the module's own."""
        values = self._part.values
        if values is self._values:
            return
        ranks = torch.distributed.is_available() and torch.distributed.is_initialized()
        if type(values) is not torch.nn.Parameter or ranks:
            raise DataError(
                "the sparsifier of a gradient sees it before ranks or transforms do, and these values are not the "
                "module's own; leave s[...].grad.sparsify out, or train under DistributedDataParallel"
            )
        self._hook()

    @torch.no_grad()
    def __call__(self, grad: torch.Tensor) -> torch.Tensor:
        pattern = self._part.packed().pattern
        dense = PackedTensor(pattern, {"": grad}).to_dense()
        return torch.where(pattern.gather(self._sparsifier(dense)), grad, 0)

    def __getstate__(self):
        return {"_part": self._part, "_sparsifier": self._sparsifier, "_values": None}

# SPDX-License-Identifier: Apache-2.0
"""Drops entries one column after the other and lets those to come make up for it."""

from __future__ import annotations

import torch

from ..errors import DataError
from .calibrated import Calibrated
from .choose import check_sparsity, keep_count, keep_largest, magnitudes
from .nm import NM


class SparseGPT(Calibrated):
    """Drop entries column by column, each time moving what is left of the row so that its outputs change least.

    Frantar and Alistarh (2023). Entries are chosen `columns` columns at a time, over all rows, so that
    `numel - round(sparsity * numel)` stay; with an `NM` in place of the sparsity, so many of each group. `damp` times
    the mean of the diagonal is added to the products of the inputs of `Schedule.calibrate`. The kept values change.

    >>> import lacis, torch
    >>> s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(8, 4)), target="eager")
    >>> handle = s["0.weight"].sparsify(SparseGPT(0.5)).set_format(lacis.Csr)
    >>> s.calibrate([torch.randn(32, 8)])
    >>> _ = s.build()
    >>> handle.packed.nnz
    16

    Raises `DataError` for a share that is not from 0 to 1, for no columns, for a `damp` that is not positive, and where
    the inputs are not finite.
    """

    counts = wants_gram = True

    def __init__(self, sparsity: float | NM, columns: int = 128, damp: float = 0.01):
        self.sparsity = sparsity if isinstance(sparsity, NM) else check_sparsity(sparsity)
        if not isinstance(columns, int) or columns < 1 or not damp > 0:
            raise DataError(f"SparseGPT: columns and damp are positive, not {columns!r} and {damp!r}")
        self.columns, self.damp = columns, damp
        if isinstance(sparsity, NM):
            self.columns = -(-columns // sparsity.m) * sparsity.m

    def solve(self, tensor, inputs):
        weight = tensor.detach().to(inputs.gram.dtype, copy=True)
        factor = self._factor(inputs.gram.clone(), weight)
        mask = torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
        for first in range(0, tensor.shape[1], self.columns):
            last = min(first + self.columns, tensor.shape[1])
            errors = self._solve(weight, mask, factor, first, last)
            weight[:, last:] -= errors @ factor[first:last, last:]
        return mask, (weight * mask).to(tensor.dtype)

    def _factor(self, gram: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The upper Cholesky factor of the inverse of the damped products; unused features have no weight."""
        diagonal = gram.diagonal()
        unused = diagonal == 0
        diagonal[unused] = 1
        weight[:, unused] = 0
        diagonal += self.damp * diagonal.mean()
        if not bool(gram.isfinite().all()):
            raise DataError("SparseGPT: the inputs of calibrate() are not finite")
        return torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(gram)), upper=True)

    def _solve(self, weight, mask, factor, first: int, last: int) -> torch.Tensor:
        """Choose the entries of some columns, drop the others, and answer what is left to make up for."""
        scale, errors = factor.diagonal()[first:last], torch.zeros_like(weight[:, first:last])
        if not isinstance(self.sparsity, NM):
            mask[:, first:last] = self._kept(weight[:, first:last] / scale, first * len(weight))
        for column in range(first, last):
            if isinstance(self.sparsity, NM) and column % self.sparsity.m == 0:
                end = min(column + self.sparsity.m, last)
                mask[:, column:end] = self.sparsity(weight[:, column:end] / factor.diagonal()[column:end])
            then = weight[:, column] * mask[:, column]
            error = (weight[:, column] - then) / factor[column, column]
            weight[:, column:last] -= error[:, None] * factor[column, column:last]
            weight[:, column] = then
            errors[:, column - first] = error
        return errors

    def _kept(self, scores: torch.Tensor, before: int) -> torch.Tensor:
        """The largest of these columns: as many as make the count come out when all columns are done."""
        count = keep_count(before + scores.numel(), self.sparsity) - keep_count(before, self.sparsity)
        return keep_largest(magnitudes(scores.contiguous()), count).reshape(scores.shape)

# SPDX-License-Identifier: Apache-2.0
"""Keeps what is large and much used."""

from __future__ import annotations

from .by_row import check_per, keep_largest_of_rows
from .calibrated import Calibrated
from .choose import check_sparsity, keep_count, keep_largest, magnitude, magnitudes
from .nm import NM


class Wanda(Calibrated):
    """Keep the entries of largest |w[i, j]| * norm(x[:, j]) (Sun et al., 2023).

    The norm is over the tokens of `Schedule.calibrate`. `columns - round(sparsity * columns)` of each row stay, as in
    the paper; with `per="tensor"` so many of the whole. In place of a sparsity an `NM` keeps so many of each group. Of
    equal ones the first. The values stay as they are.

    >>> import lacis, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 2))
    >>> s = lacis.create_schedule(model, target="eager")
    >>> handle = s["0.weight"].sparsify(Wanda(0.5)).set_format(lacis.Csr)
    >>> s.calibrate([torch.tensor([[9.0, 0.0, 9.0, 0.0]])])
    >>> _ = s.build()
    >>> handle.packed.pattern.to_mask().tolist()
    [[True, False, True, False], [True, False, True, False]]

    Raises `DataError` for a share that is not from 0 to 1, and for another `per`.
    """

    counts = True

    def __init__(self, sparsity: float | NM, per: str = "row"):
        self.sparsity = sparsity if isinstance(sparsity, NM) else check_sparsity(sparsity)
        self.per = check_per(per)

    def solve(self, tensor, inputs):
        scores = magnitude(tensor) * inputs.norms
        if isinstance(self.sparsity, NM):
            return self.sparsity(scores), tensor
        if self.per == "row":
            return keep_largest_of_rows(scores, keep_count(tensor.shape[1], self.sparsity)), tensor
        kept = keep_largest(magnitudes(scores), keep_count(tensor.numel(), self.sparsity))
        return kept.reshape(tensor.shape), tensor

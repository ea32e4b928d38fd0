# SPDX-License-Identifier: Apache-2.0
"""Keeps what is larger than a share of all that passed while the model was shown batches."""

from __future__ import annotations

import torch

from ..errors import DataError, ScheduleError
from .base import Sparsifier
from .choose import check_sparsity, magnitude
from .threshold import Threshold

MOST = 2**22
"""How many values of each tensor are looked at, evenly spaced: their quantile is that of all to about one in a
thousand, for any number of values."""


class Quantile(Sparsifier):
    """Keep the entries whose magnitude is above that of a `share` of all entries which `Schedule.calibrate` sees pass.

    One threshold for an activation, found once (TEAL, Liu et al., 2024; CATS, Lee et al., 2024): how many entries a
    call keeps follows from its values, `1 - share` of them on average. `value` is the threshold, where it is known.

    >>> import lacis, torch
    >>> model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2))
    >>> s = lacis.create_schedule(model, target="eager")
    >>> edge = s["1:in0"].sparsify(lacis.Quantile(0.5)).set_format(lacis.Csr)
    >>> s.calibrate([torch.tensor([[1.0, 2.0, 3.0, 4.0]])])
    >>> edge
    s["1:in0"].sparsify(Quantile(share=0.5, value=2.0)).set_format(Csr)

    Raises `DataError` for a share that is not from 0 to 1, and `ScheduleError` where it is used without a threshold.
    """

    sees_values = True

    def __init__(self, share: float, value: float | None = None):
        self.share, self.value = check_sparsity(share), value
        if not isinstance(self.share, float):
            raise DataError(f"Quantile: a share from 0 to 1 is expected, not {share!r}")

    @property
    def is_settled(self):
        return self.value is not None

    def mask(self, tensor):
        if not self.is_settled:
            raise ScheduleError("Quantile keeps what is above a threshold; call s.calibrate(batches), which finds it")
        return Threshold(self.value).mask(tensor)

    @staticmethod
    def seen(tensor: torch.Tensor) -> torch.Tensor:
        """What of a tensor that passes is kept for `settled`: magnitudes, one axis."""
        sizes = magnitude(tensor.detach()).reshape(-1)
        return sizes[:: -(-sizes.numel() // MOST) or 1]

    def settled(self, seen: list[torch.Tensor]) -> Quantile:
        """The sparsifier with the threshold that follows from all that was seen."""
        sizes = torch.cat(list(seen)).nan_to_num(nan=torch.inf)
        count = round(self.share * len(sizes))
        value = float(sizes.sort().values[count - 1]) if count else -1.0  # nothing is below
        return Quantile(self.share, value)

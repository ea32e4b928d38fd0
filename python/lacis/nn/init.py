# SPDX-License-Identifier: Apache-2.0
"""First values of packed weights, entry by entry: no dense weight is made."""

from __future__ import annotations

import torch

from ..errors import DataError


@torch.no_grad()
def kaiming_uniform_(weight, a: float = 0.0, nonlinearity: str = "leaky_relu", axis: int = 0, generator=None):
    """Fill a built layer's packed weight with uniform values, whose bound is that of each row's own entries.

    A row of n entries gets values in (-b, b) with b = gain · sqrt(3 / n), so that its output varies as that of a dense
    row does (He et al., Delving Deep into Rectifiers, 2015, with the fan-in of the sparse row). `a` and `nonlinearity`
    are those of `torch.nn.init.kaiming_uniform_`; `axis` is that of the outputs: 1 for a weight [in, out]. Padding
    stays 0. Answers the weight.

    >>> import lacis
    >>> layer = lacis.nn.SparseLinear(64, 8, lacis.Csr, lacis.Random(0.75), target="eager")
    >>> weight = kaiming_uniform_(layer.weight, a=5**0.5)
    >>> per_row = layer.weight.packed().pattern.to_mask().sum(1)
    >>> bool((weight.to_dense().abs() <= per_row.rsqrt()[:, None]).all())
    True

    Raises `DataError` for what is no packed weight, for integer values, and for an axis that it has not.
    """
    if not getattr(weight, "is_packed_weight", False):
        raise DataError(f"init: a packed weight is expected, as layer.weight, not a {type(weight).__name__}")
    if not weight.dtype.is_floating_point:
        raise DataError(f"init: the values are {weight.dtype}, which uniform values do not fit")
    if not 0 <= axis < len(weight.packed_shape):
        raise DataError(f"init: the weight has {len(weight.packed_shape)} axes, not an axis {axis}")
    gain, per_row = torch.nn.init.calculate_gain(nonlinearity, a), entries_of_rows(weight, axis)
    bounds = gain * (3.0 / per_row.clamp_min(1)).sqrt()
    for part in weight._parts():
        axes, valid = part.structure.coordinates()
        bound = bounds[axes[axis].clamp(0, len(bounds) - 1)]
        drawn = torch.empty_like(bound).uniform_(-1.0, 1.0, generator=generator) * bound
        part.values.copy_(torch.where(valid, drawn, 0).reshape(part.values.shape))
    return weight


def entries_of_rows(weight, axis: int = 0) -> torch.Tensor:
    """float32 [rows]: how many entries each has, in all parts of a sum together."""
    count = torch.zeros(weight.packed_shape[axis], device=weight.device)
    for part in weight._parts():
        axes, valid = part.structure.coordinates()
        count.index_add_(0, axes[axis][valid], torch.ones((), device=count.device).expand(int(valid.sum())))
    return count


@torch.no_grad()
def uniform_bias_(bias: torch.Tensor, weight) -> None:
    """Within 1 / sqrt(n) for a row of n entries, as `torch.nn.Linear` has it; 0 where there is none."""
    count = entries_of_rows(weight)
    bias.uniform_(-1.0, 1.0).mul_(torch.where(count > 0, count.clamp_min(1).rsqrt(), 0).to(bias.dtype))

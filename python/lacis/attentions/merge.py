# SPDX-License-Identifier: Apache-2.0
"""`lacis.merge_attention`: attention on several patterns, as if on their union."""

from __future__ import annotations

import math

import torch

from ..errors import DataError


def merge_attention(parts) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs and logs of sums of `lacis.attention(..., return_lse=True)` on disjoint patterns, as if on all together.

    `parts`: pairs `(output, lse)`, outputs [..., Sq, Dv] and lse [..., Sq] of one shape each, in natural log, as ring
    attention and decoding in pieces have them. Returns such a pair, in the dtypes of the first. A part whose lse is
    -infinity does not count, whatever its output holds; where all are, the output is 0. Differentiable in all of them.

    >>> o, lse = merge_attention([(torch.ones(1, 2), torch.zeros(1)), (torch.full((1, 2), 3.0), torch.zeros(1))])
    >>> o, lse.exp()
    (tensor([[2., 2.]]), tensor([2.]))

    Raises `DataError` for no parts, and for parts of different shapes.
    """
    parts = [tuple(part) for part in parts]
    if not parts or any(len(part) != 2 for part in parts):
        raise DataError("merge_attention: pairs (output, lse) are needed, one at least")
    for n, (output, lse) in enumerate(parts):
        if output.shape != parts[0][0].shape or lse.shape != output.shape[:-1]:
            raise DataError(
                f"merge_attention: part {n} has an output {list(output.shape)} and lse {list(lse.shape)}; the first "
                f"output is {list(parts[0][0].shape)}, and lse has its axes but the last"
            )
    wide = torch.promote_types(parts[0][0].dtype, torch.float32)
    logs = torch.stack([lse.to(wide) for _, lse in parts])
    top = logs.detach().amax(0)
    top = torch.where(top == -math.inf, 0, top)
    weights = torch.exp(logs - top)
    total = weights.sum(0)
    empty = total == 0
    sound = torch.where(empty, 1, total)
    outputs = torch.stack([output.to(wide) for output, _ in parts])
    outputs = torch.where((weights == 0)[..., None], 0, outputs)
    merged = (outputs * (weights / sound)[..., None]).sum(0)
    lse = torch.where(empty, -math.inf, top + torch.log(sound))
    return merged.to(parts[0][0].dtype), lse.to(parts[0][1].dtype)

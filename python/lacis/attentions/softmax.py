# SPDX-License-Identifier: Apache-2.0
"""`lacis.softmax`: the softmax over the entries of each fibre; `lacis.logsumexp`: the log of what it divides by."""

from __future__ import annotations

import math

import torch

from ..capture.traced import Traced
from ..capture.traced_softmax import traced_logsumexp, traced_softmax
from ..errors import DataError
from ..packing import PackedTensor
from .fibres import Fibres, axis_of


def softmax(packed: PackedTensor, letter, *, target: str = "auto") -> PackedTensor:
    """The softmax of a packed tensor along one sparse axis: over the entries alone, which sum up to 1.

    `letter` is that of the axis in `packed.format`'s text, or its number. Any format and floating point dtype; half
    types are summed in float32. Padding stays 0. An entry of -infinity gets 0, and so has all of a fibre that holds
    nothing else; NaN and +infinity spread along their fibre, as in `torch.softmax`. Differentiable in `.values`, twice
    too. Three kernels, without atomics and without waiting for a device; `target` as for `lacis.einsum`.

    >>> import lacis
    >>> s = lacis.pack(torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 2.0]]), lacis.Csr)
    >>> softmax(s, "j", target="eager").to_dense()
    tensor([[0.0000, 1.0000, 0.0000],
            [0.5000, 0.0000, 0.5000]])

    Raises `DataError` for what is no packed tensor of floating point values, and for an axis that it has not.
    """
    if isinstance(packed, Traced):
        return traced_softmax(packed, letter)
    fibres = _fibres("softmax", packed, letter, target)
    return each(lambda p: p.to(packed.dtype), normalised(fibres, packed)[0])


def logsumexp(packed: PackedTensor, letter, *, target: str = "auto") -> torch.Tensor:
    """The log of the sum of exponentials over each fibre, dense, without the axis `letter`; -infinity of an empty one.

    `packed` and `letter` as for `softmax`; natural log, float32 at least. Differentiable in `.values`.

    >>> import lacis
    >>> s = lacis.pack(torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 2.0]]), lacis.Csr)
    >>> logsumexp(s, "j", target="eager")
    tensor([1.0000, 2.6931])

    Raises `DataError` for what is no packed tensor of floating point values, and for an axis that it has not.
    """
    if isinstance(packed, Traced):
        return traced_logsumexp(packed, letter)
    return normalised(_fibres("logsumexp", packed, letter, target), packed)[1]


def _fibres(what: str, packed, letter, target: str) -> Fibres:
    if not isinstance(packed, PackedTensor):
        raise DataError(f"{what}: a packed tensor is needed, not {type(packed).__name__}; see lacis.pack")
    if not packed.dtype.is_floating_point:
        raise DataError(f"{what}: the values are {packed.dtype}; it needs floating point numbers")
    return Fibres(packed.pattern, axis_of(what, packed, letter), target)


def normalised(fibres: Fibres, scores: PackedTensor, sink: torch.Tensor | None = None) -> tuple:
    """Probabilities in float32 at least, and the log of the sum of exponentials of each fibre, -infinity where empty.

    `sink`, of the shape of the fibres, is the score of one more entry in each, which takes its share and is left out.
    """
    wide = torch.promote_types(scores.dtype, torch.float32)
    scores = each(lambda s: s.to(wide), scores)
    top = fibres.largest(scores)
    top = top if sink is None else torch.maximum(top, sink.detach().to(wide))
    top = torch.where(top == -math.inf, 0, top)
    below = each(lambda s, t: torch.exp(s - t), scores, fibres.spread(top))
    total = fibres.total(below)
    total = total if sink is None else total + torch.exp(sink.to(wide) - top)
    empty = total == 0
    sound = torch.where(empty, 1, total)
    shares = fibres.spread(torch.where(empty, 0, 1 / sound))
    probabilities = each(lambda e, share: e * share, below, shares)
    return probabilities, torch.where(empty, -math.inf, top + torch.log(sound))


def with_sink(output: torch.Tensor, lse: torch.Tensor, sink: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [B, H, S, D] and log of the sums, with the scores [H] of one more key, which takes its share."""
    sink = sink.to(lse.dtype)[:, None]
    top = torch.maximum(lse, sink).detach()
    top = torch.where(top == -math.inf, 0, top)
    own, more = torch.exp(lse - top), torch.exp(sink - top)
    empty = own + more == 0
    total = torch.where(empty, 1, own + more)
    return output * (own / total)[..., None], torch.where(empty, -math.inf, top + torch.log(total))


def each(function, packed: PackedTensor, *others: PackedTensor) -> PackedTensor:
    """An element-wise function of the stored values, part by part."""
    parts = packed.values_by_part
    rest = [other.values_by_part for other in others]
    return PackedTensor(packed.pattern, {name: function(v, *(o[name] for o in rest)) for name, v in parts.items()})

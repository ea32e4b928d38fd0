# SPDX-License-Identifier: Apache-2.0
"""torch's nested tensors of jagged layout: sequences of different lengths, as a ragged level."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..formats import Format
from ..formats.axes import iter

_WIDTHS = {torch.int32: "i32", torch.int64: "i64"}


def ragged(rank: int, pos: str = "i32") -> Format:
    """The format of a jagged tensor with `rank` axes, of which the second one differs in length.

    >>> print(ragged(3))
    #lacis.format<(i, j, k) -> (i : dense, j : ragged, k : dense)>
    """
    with iter(dim=rank) as (batch, *rest):
        levels = [batch, rest[0].ragged().widths(pos=pos), *rest[1:]]
        return Format.of([axis.level() for axis in levels])


def is_jagged(format, shape) -> bool:
    """Is it the format of a jagged tensor, with offsets of any integer type?"""
    rank = len(shape)
    return rank > 1 and any(format == ragged(rank, pos) for pos in _WIDTHS.values())


def to_jagged(packed, shape) -> torch.Tensor:
    """The nested tensor over the same arrays; its offsets are `pos1`."""
    return torch.nested.nested_tensor_from_jagged(
        packed.values.reshape(-1, *shape[2:]), offsets=packed.storage["pos1"], max_seqlen=shape[1]
    )


def from_jagged(tensor):
    """A nested tensor, over the same arrays: the second axis is as long as the longest sequence.

    Raises `DataError` for one that is not jagged, is ragged along another axis, or has gaps between its sequences.
    """
    from .packed import PackedTensor
    from .validate import from_storage

    if tensor.layout != torch.jagged:
        raise DataError("a nested tensor is packed in the layout torch.jagged; .to_padded_tensor(0) of it is dense")
    if tensor._ragged_idx != 1 or tensor.lengths() is not None:
        raise DataError("a nested tensor is packed that is ragged along axis 1, without gaps; call .contiguous() first")
    values, offsets = tensor.values(), tensor.offsets()
    longest = int(offsets.diff().max()) if offsets.numel() > 1 else 0
    shape = (tensor.shape[0], longest, *values.shape[1:])
    format = ragged(len(shape), _WIDTHS[offsets.dtype])
    packed: PackedTensor = from_storage(format, shape, {"pos1": offsets}, values.reshape(-1))
    return packed

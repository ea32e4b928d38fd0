# SPDX-License-Identifier: Apache-2.0
"""Packed tensors as torch's own layouts, sparse and jagged, where torch has one."""

from __future__ import annotations

import torch

from ..errors import FormatError
from ..formats import Bcsc, Bsr, Coo, Csc, Csr, Dense
from ..formats.widths import without_widths
from .jagged import is_jagged, to_jagged


def to_torch(packed) -> torch.Tensor:
    """The torch tensor with the layout of a packed one, over the same arrays where the layout allows.

    torch's indices have 32 or 64 bits, so that narrower ones are copied. Raises `FormatError`, with the formats that
    have a layout, where torch has none.
    """
    formats = [packed.format, without_widths(packed.format)]
    for matches, build in _LAYOUTS:
        if any(matches(format, packed.shape) for format in formats):
            return build(packed, tuple(packed.shape))
    if packed.format.batch:
        raise FormatError(
            f"torch's batched layouts have coordinates for each matrix, and those of '{packed.format}' are shared; "
            f"to(lacis.Coo({packed.ndim})) has a layout, as has each matrix by itself"
        )
    raise FormatError(
        f"torch has no layout for '{packed.format}'; it has Csr, Csc, Coo, Bsr and Bcsc with blocks that divide "
        "the shape, Dense, and nested tensors of jagged layout for '(i, j, k) -> (i : dense, j : ragged, k : dense)'"
    )


def _is(kind):
    return lambda format, shape: format == kind()


def _is_any_rank(kind):
    return lambda format, shape: format == kind(len(shape))


def _is_blocked(kind):
    def matches(format, shape):
        tile = getattr(format, "tile", ())
        return len(tile) == 2 and format == kind(*tile) and all(size % b == 0 for size, b in zip(shape, tile))

    return matches


def _compressed(layout):
    def build(packed, shape):
        arrays = [packed.storage["pos1"], packed.storage["crd1"]]
        wide = torch.int64 if any(array.dtype == torch.int64 for array in arrays) else torch.int32
        pos, crd = (array.to(wide) for array in arrays)
        return torch.sparse_compressed_tensor(
            pos, crd, packed.values, size=shape, layout=layout, check_invariants=False
        )

    return build


def _coo(packed, shape):
    indices = torch.stack([packed.storage[f"crd{n}"].long() for n in range(len(shape))])
    tensor = torch.sparse_coo_tensor(indices, packed.values, size=shape, check_invariants=False)
    return tensor if packed.pattern.part("").repeats else tensor._coalesced_(True)


_LAYOUTS = [
    (_is(Csr), _compressed(torch.sparse_csr)),
    (_is(Csc), _compressed(torch.sparse_csc)),
    (_is_any_rank(Coo), _coo),
    (_is_blocked(Bsr), _compressed(torch.sparse_bsr)),
    (_is_blocked(Bcsc), _compressed(torch.sparse_bsc)),
    (_is_any_rank(Dense), lambda packed, shape: packed.to_dense()),
    (is_jagged, to_jagged),
]

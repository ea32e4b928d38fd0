# SPDX-License-Identifier: Apache-2.0
"""torch's semi-structured arrays: the values that n:m groups keep, and metadata as CUTLASS reads it."""

from __future__ import annotations

import dataclasses

import torch

from ..errors import DataError, FormatError
from ..formats import NMFormat
from ..patterns.conversion import placed_entries
from .packed import PackedTensor

_HALVES = (torch.float16, torch.bfloat16)


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What torch makes of a dtype: `n` of `m` neighbours, a nibble of metadata for every 4 / `n` of them."""

    n: int
    m: int
    metadata: torch.dtype

    @property
    def rows(self) -> int:
        """The number of rows is a multiple of it."""
        return 32 if self.metadata.itemsize == 2 else 16

    @property
    def nibbles(self) -> int:
        """Of an element of metadata, one a group."""
        return 2 * self.metadata.itemsize

    @property
    def columns(self) -> int:
        """The number of columns is a multiple of it: four elements of metadata."""
        return 4 * self.m * self.nibbles


def _kind(dtype: torch.dtype, name: str) -> _Kind:
    if dtype not in (*_HALVES, torch.float32, torch.int8):
        raise DataError(f"{name}: torch has semi-structured float16, bfloat16, float32 and int8, not {dtype}")
    if dtype == torch.float32:
        return _Kind(1, 2, torch.int16)
    return _Kind(2, 4, torch.int16 if dtype in _HALVES else torch.int32)


def from_semi_structured(values, metadata) -> PackedTensor:
    """A matrix from torch's semi-structured arrays (`SparseSemiStructuredTensorCUTLASS`), as `TwoFour`.

    `values` is [m, k / 2], two of every four neighbours in a row; `metadata` int16 [m, k / 16] (int32 [m, k / 32] for
    int8 values), reordered as CUTLASS has it. Values of float32 are one of every two, `NMFormat(1, 2)`, and metadata
    int16 [m, k / 8]. Values that are 0 are no entries: torch stores them where a group has fewer. Differentiable in
    `values`.

    >>> import torch
    >>> packed = from_semi_structured(torch.ones(32, 32).half(), torch.full((32, 4), 0x4444, dtype=torch.int16))
    >>> tuple(packed.shape), packed.to_dense()[0, :8].tolist()
    ((32, 64), [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0])

    Raises `DataError` for arrays that do not fit each other, and metadata that names no two neighbours in order.
    """
    kind = _checked(values, metadata)
    rows, columns = values.shape[0], 2 * values.shape[1]
    flat = metadata.reshape(-1).gather(0, _places(rows, metadata.shape[1], kind, metadata.device))
    nibble = flat.reshape(rows, -1, 1) >> torch.arange(0, 4 * kind.nibbles, 4, device=flat.device)
    first, second = (nibble & 3).reshape(rows, -1).long(), (nibble >> 2 & 3).reshape(rows, -1).long()
    wrong = (first >= second) if kind.n == 2 else (first % 2 != 0) | (second != first + 1)
    if bool(wrong.any()):
        row, group = (int(at) for at in wrong.nonzero()[0])
        raise DataError(
            f"from_semi_structured: the metadata of group {group} in row {row} is {int(first[row, group])}, "
            f"{int(second[row, group])}, which are no {kind.n} of {kind.m} neighbours in order"
        )
    inside = torch.stack([first, second], -1).reshape(rows, -1) if kind.n == 2 else first // 2
    column = torch.arange(columns // 2, device=flat.device) // kind.n * kind.m + inside
    kept = values.detach() != 0
    axes = [kept.nonzero()[:, 0], column[kept]]
    placed = placed_entries(NMFormat(kind.n, kind.m), (rows, columns), axes, True)
    return PackedTensor(placed.pattern, placed.values(values[kept]))


def to_semi_structured(packed: PackedTensor) -> tuple[torch.Tensor, torch.Tensor]:
    """torch's semi-structured arrays of a matrix in `TwoFour` (of float32 in `NMFormat(1, 2)`): values and metadata.

    They are bit for bit what `torch.sparse.to_sparse_semi_structured` stores for CUTLASS, and `from_semi_structured`
    reads them. Differentiable in the values.

    >>> import lacis, torch
    >>> w = torch.tensor([0, 1, 0, 2.0]).repeat(32, 16).half()
    >>> values, metadata = to_semi_structured(lacis.pack(w, lacis.TwoFour))
    >>> values.shape, metadata.shape, hex(int(metadata[0, 0]) & 0xFFFF)
    (torch.Size([32, 32]), torch.Size([32, 4]), '0xdddd')

    Raises `FormatError` for other formats and sizes that torch refuses, `DataError` for other dtypes.
    """
    kind = _kind(packed.dtype, "to_semi_structured")
    _check_format(packed, kind)
    rows, columns = packed.shape
    at, axes = packed.pattern.part("").entry_axes()
    group, inside = axes[1] // kind.m, axes[1] % kind.m
    has = torch.zeros(rows, columns // kind.m, kind.m, dtype=torch.bool, device=packed.device)
    has[axes[0], group, inside] = True
    first, second = _pairs(*(has.unbind(-1) if kind.m == 4 else has.repeat_interleave(2, -1).unbind(-1)))
    own = packed.values.reshape(-1)
    values = torch.zeros(rows, columns // kind.m, kind.n, dtype=packed.dtype, device=packed.device)
    place = (inside == second[axes[0], group]).long() if kind.n == 2 else torch.zeros_like(inside)
    values = values.index_put((axes[0], group, place), own if at is None else own[at])
    nibbles = (first | second << 2).reshape(rows, -1, kind.nibbles) << torch.arange(
        0, 4 * kind.nibbles, 4, device=packed.device
    )
    plain = nibbles.sum(-1).to(kind.metadata)
    metadata = torch.empty_like(plain).reshape(-1)
    metadata[_places(*plain.shape, kind, packed.device)] = plain.reshape(-1)
    return values.reshape(rows, columns // 2), metadata.reshape(plain.shape)


def _pairs(m0, m1, m2, m3) -> tuple[torch.Tensor, torch.Tensor]:
    """Two of four neighbours, those that are there among them, in order; torch's choice where there are fewer."""
    first = torch.where(m0 & m1, 0, torch.where(m0, 0, torch.where(m1, 1, 2)))
    second = torch.where(m0 & m1, 1, torch.where(~m0 & ~m1, 3, torch.where(m3, 3, 2)))
    return first, second


def _places(rows: int, columns: int, kind: _Kind, device) -> torch.Tensor:
    """int64 [rows * columns]: where each element of the metadata lies, as CUTLASS reorders it.

    Rows go by groups of 32 (16 for 32-bit metadata), whose eighths interleave; two by two elements swap across their
    diagonal; pairs of columns lie one after the other. (`tools/util/include/cutlass/util/host_reorder.h` of CUTLASS.)
    """
    row = torch.arange(rows, device=device)[:, None].expand(rows, columns)
    column = torch.arange(columns, device=device).expand(rows, columns)
    group, eighths = kind.rows, kind.rows // 8
    row = row // group * group + row % 8 * eighths + row % group // 8
    shift = ((row % 2 == 0) & (column % 2 == 1)).long() - ((row % 2 == 1) & (column % 2 == 0)).long()
    row, column = row + shift, column - shift
    return (column // 2 * rows * 2 + row * 2 + column % 2).reshape(-1)


def _checked(values, metadata) -> _Kind:
    for name, tensor in (("values", values), ("metadata", metadata)):
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.ndim != 2:
            raise DataError(f"from_semi_structured: '{name}' must be a dense tensor with 2 axes")
    kind = _kind(values.dtype, "from_semi_structured")
    wanted = [values.shape[0], values.shape[1] // (kind.n * kind.nibbles)]
    if values.shape[0] % kind.rows or values.shape[1] % (kind.columns // 2):
        raise DataError(
            f"from_semi_structured: 'values' of {values.dtype} are multiples of [{kind.rows}, {kind.columns // 2}], "
            f"not {list(values.shape)}"
        )
    if list(metadata.shape) != wanted or metadata.dtype != kind.metadata or metadata.device != values.device:
        raise DataError(
            f"from_semi_structured: 'metadata' must be {kind.metadata} {wanted} on {values.device}, "
            f"not {metadata.dtype} {list(metadata.shape)} on {metadata.device}"
        )
    return kind


def _check_format(packed, kind: _Kind) -> None:
    if packed.format != NMFormat(kind.n, kind.m):
        raise FormatError(
            f"torch's semi-structured tensors of {packed.dtype} keep {kind.n} of {kind.m}, '{packed.format}' is "
            f"something else; .to(lacis.NMFormat({kind.n}, {kind.m})) stores the same entries so"
        )
    multiples = (kind.rows, kind.columns)
    if any(size % multiple for size, multiple in zip(packed.shape, multiples)):
        raise FormatError(
            f"torch's semi-structured tensors of {packed.dtype} have multiples of {list(multiples)} rows and columns, "
            f"not {list(packed.shape)}"
        )

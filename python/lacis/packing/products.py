# SPDX-License-Identifier: Apache-2.0
"""`packed @ x` and `x @ packed`: einsums by their operator, as a user would write them."""

from __future__ import annotations

import torch

from ..errors import DataError


def times_dense(packed, x) -> torch.Tensor:
    """`packed @ x`: x is [j], [j, k] or a batch of matrices [..., j, k]."""
    if not _is_dense(packed, x):
        return NotImplemented
    if x.ndim < 2:
        return _einsum("ij,j->i", packed, x)
    if x.ndim == 2:
        return _einsum("ij,jk->ik", packed, x)
    flat = x.reshape(-1, *x.shape[-2:])
    return _einsum("ij,bjk->bik", packed, flat).reshape(*x.shape[:-2], packed.shape[0], x.shape[-1])


def dense_times(x, packed) -> torch.Tensor:
    """`x @ packed`: x is [i] or [..., i]."""
    if not _is_dense(packed, x):
        return NotImplemented
    if x.ndim < 2:
        return _einsum("ij,i->j", packed, x)
    if x.ndim == 2:
        return _einsum("ij,bi->bj", packed, x)
    return _einsum("ij,bi->bj", packed, x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], packed.shape[1])


def require_matrix(packed, what: str) -> None:
    """Raise `DataError` unless the packed tensor has two axes."""
    if len(packed.shape) != 2:
        raise DataError(
            f"'{what}' is of matrices, the packed tensor has {len(packed.shape)} axes; take .transpose(...) or "
            "lacis.einsum"
        )


def _is_dense(packed, x) -> bool:
    require_matrix(packed, "@")
    if isinstance(x, type(packed)):
        raise DataError("'@' with two packed operands has no code; one may be packed, take .to_dense() of the other")
    return isinstance(x, torch.Tensor)


def _einsum(expression: str, packed, x) -> torch.Tensor:
    import lacis

    return lacis.einsum(expression, packed, x)

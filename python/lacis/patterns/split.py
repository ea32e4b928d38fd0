# SPDX-License-Identifier: Apache-2.0
"""Which entry goes to which part of a sum."""

from __future__ import annotations

import operator

import torch

from ..formats import Format
from ..formats.sum import Compare
from .place import fits, fused_keys, sort_entries

_SIGNS = {"<": operator.lt, ">=": operator.ge, "==": operator.eq}
_FEW = 8  # coordinates for each entry up to which all of them are counted


def accepted(format: Format, tests, shape, axes) -> torch.Tensor:
    """bool [n]: the entry at `axes` (int64 [n] per axis) meets every test of the part with this format.

    The tests look one after another, each only at what the ones before let through.
    """
    accept = torch.ones(axes[0].shape, dtype=torch.bool, device=axes[0].device)
    for test in tests:
        index = accept.nonzero().reshape(-1)
        seen = [axis[index] for axis in axes]
        accept[index] = _compare(test, shape, seen) if isinstance(test, Compare) else _fitting(format, shape, seen)
    return accept


def _fitting(format: Format, shape, axes) -> torch.Tensor:
    ordered = sort_entries(format, shape, axes)
    accept = fits(ordered)
    if ordered.order is None:
        return accept
    return torch.empty_like(accept).index_put_((ordered.order,), accept)


def _compare(test: Compare, shape, axes) -> torch.Tensor:
    parts = [digit.of(axes[digit.axis]) for digit in test.digits]
    if test.function == "nnz":
        parts = [_counts(fused_keys(parts, [digit.extent(shape) for digit in test.digits]))]
    return _SIGNS[test.sign](parts[0], test.value)


def _counts(keys) -> torch.Tensor:
    """int64 [n]: how many entries have the same keys as each."""
    if len(keys) == 1 and keys[0].numel() and int(keys[0].max()) < _FEW * keys[0].numel():
        return torch.bincount(keys[0]).index_select(0, keys[0].long())
    _, inverse, counts = torch.unique(torch.stack(keys), dim=1, return_inverse=True, return_counts=True)
    return counts[inverse]

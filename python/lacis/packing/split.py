# SPDX-License-Identifier: Apache-2.0
"""Which entry goes to which part of a sum."""

from __future__ import annotations

import operator

import torch

from ..formats import Format
from ..formats.sum import Compare
from ..patterns.place import fits, sort_entries
from .entries import Entries

_SIGNS = {"<": operator.lt, ">=": operator.ge, "==": operator.eq}


def split(format: Format, tests, entries: Entries) -> tuple[Entries, Entries]:
    """The entries that meet every test of a part, and the others; the tests look at the entries one after another."""
    accept = torch.ones(entries.values.shape[:1], dtype=torch.bool, device=entries.values.device)
    for test in tests:
        index = accept.nonzero().reshape(-1)
        seen = entries.taken(index)
        met = _compare(test, seen) if isinstance(test, Compare) else _fitting(format, seen)
        accept[index] = met
    return entries.taken(accept), entries.taken(~accept)


def _fitting(format: Format, entries: Entries) -> torch.Tensor:
    ordered = sort_entries(format, entries.shape, entries.axes)
    accept = fits(ordered)
    if ordered.order is None:
        return accept
    return torch.empty_like(accept).index_put_((ordered.order,), accept)


def _compare(test: Compare, entries: Entries) -> torch.Tensor:
    parts = [digit.of(entries.axes[digit.axis]) for digit in test.digits]
    if test.function == "nnz":
        _, inverse, counts = torch.unique(torch.stack(parts), dim=1, return_inverse=True, return_counts=True)
        return _SIGNS[test.sign](counts[inverse], test.value)
    return _SIGNS[test.sign](parts[0], test.value)

# SPDX-License-Identifier: Apache-2.0
"""Where the queries of a call stand among its keys, if there are fewer of them."""

from __future__ import annotations

import enum
from collections.abc import Callable

import torch

from ..patterns.recent import RecentPatterns


class Standing(enum.Enum):
    """What is known of it."""

    UNSAID = enum.auto()
    """Nothing says: both are counted from 0."""
    LAST = enum.auto()
    """The keys are those of a sequence to its end, where the queries are."""
    ELSEWHERE = enum.auto()
    """The keys came through a cache that holds others than those up to the queries."""


NOT_LAST = (
    "{} queries meet {} keys of a cache that are not those up to the queries, as one of a fixed length has places for "
    "keys to come and one of a window drops some, and from where {} counts them is not known; take a cache that keeps "
    "all, as transformers' DynamicCache() without a config, or call the model with use_cache=False"
)
_FIRST: RecentPatterns[torch.Tensor] = RecentPatterns()  # the layers of a model share them


def along_sequence(score: Callable, q: torch.Tensor, before: int) -> Callable:
    """`score` of queries [B, H, Sq, D] with so many before them in their sequence, counted along it.

    How many is a number that is read, so that all steps of a generation share a kernel.
    """
    batch = q.shape[0]
    make = lambda: torch.full((batch,), before, device=q.device)
    is_kept = not torch.compiler.is_compiling()  # a graph has its own
    first = _FIRST.found((batch, before, q.device), q.device, make) if is_kept else make()
    return _Along(score, first).at


class _Along:
    def __init__(self, score: Callable, first: torch.Tensor):
        self.score, self.first = score, first

    def at(self, s, b, h, i, j):
        return self.score(s, b, h, i + self.first[b], j)

# SPDX-License-Identifier: Apache-2.0
"""Names of patterns, and of rules, in graphs, which hold none: a graph that knows a name is of that one alone."""

from __future__ import annotations

import itertools
import weakref

import torch

from ..errors import DataError

_numbers = itertools.count()
_PATTERNS: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # by token


def new_token(pattern) -> str:
    """A name that no other pattern or rule of this process has; empty of what a graph makes."""
    if torch.compiler.is_compiling():
        return ""
    token = f"pattern {next(_numbers)}"
    _PATTERNS[token] = pattern
    return token


class Named:
    """What has a token; copies and what comes from files have their own."""

    _token: str

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)
        self._token = new_token(self)


def by_token(token: str):
    """The pattern or rule; raises `DataError` where it is gone."""
    pattern = _PATTERNS.get(token)
    if pattern is None:
        raise DataError(f"'{token}' of a compiled graph is gone; keep the pattern as long as the graph runs")
    return pattern

# SPDX-License-Identifier: Apache-2.0
"""What kernels calls of attention run, told to who watches them."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Mapping

_WATCHED: contextvars.ContextVar = contextvars.ContextVar("watched", default=None)


@contextlib.contextmanager
def watching():
    """The kernels by role of the calls of attention inside, one after another; of those that are one kernel.

    >>> with watching() as seen:
    ...     show(lambda: {"forward": None})
    >>> seen
    [{'forward': None}]
    """
    seen: list[Mapping] = []
    token = _WATCHED.set(seen)
    try:
        yield seen
    finally:
        _WATCHED.reset(token)


def show(make: Callable[[], Mapping]) -> None:
    """Tells who watches what `make` answers."""
    if _WATCHED.get() is not None:
        _WATCHED.get().append(make())

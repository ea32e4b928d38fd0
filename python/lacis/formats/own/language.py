# SPDX-License-Identifier: Apache-2.0
"""What methods of level kinds say beyond operators: the same words on symbols, which become code, and on tensors."""

from __future__ import annotations

import contextlib
import contextvars

from ...errors import FormatError

_running: contextvars.ContextVar = contextvars.ContextVar("lacis_running", default=None)


@contextlib.contextmanager
def running(machine):
    """Words are said to `machine`: `traced.Code` or `eager.Eager`."""
    token = _running.set(machine)
    try:
        yield machine
    finally:
        _running.reset(token)


def _machine(word: str):
    machine = _running.get()
    if machine is None:
        raise FormatError(f"lacis.{word} stands in the methods of a level kind, which are run when it is needed")
    return machine


def where(condition, then, otherwise):
    """`then` where `condition` holds, else `otherwise`; both are computed.

    Numbers and results are integers; of truth values write `a & b`, `a | b` and `~a`. Raises `FormatError` outside of
    the methods of a level kind.
    """
    return _machine("where").where(condition, then, otherwise)


def popcount(value):
    """How many of the lowest 32 bits are set."""
    return _machine("popcount").popcount(value)


def ctz(value):
    """How many of the lowest 32 bits lie below the first that is set; 32 where none is."""
    return _machine("ctz").ctz(value)


def load(array, index):
    """The element of one of the kind's arrays: `array[index]`."""
    return array[index]


def fori(count, body, start):
    """`start`, after `count` rounds of `state = body(round, state)`; rounds count from 0.

    The state is an integer, or a tuple of integers, and `body` answers as many.
    """
    return _machine("fori").fori(count, body, start)


def whilei(condition, body, start):
    """`start`, after rounds of `state = body(state)` as long as `condition(state)` holds.

    There are at most as many rounds as the level has coordinates, and 64 more; then the state is what it is. So no
    array makes a kernel run for ever. Nothing is counted where the loop is seen to end by itself: one of the numbers
    goes up by a constant in each round, and the condition holds only while it is less than `at.size` or a constant.
    """
    return _machine("whilei").whilei(condition, body, start)


def as_tuple(state) -> tuple:
    return tuple(state) if isinstance(state, (tuple, list)) else (state,)


def like(state, values):
    """`values`, as one value where `state` is one."""
    return tuple(values) if isinstance(state, (tuple, list)) else values[0]

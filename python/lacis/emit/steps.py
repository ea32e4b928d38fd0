# SPDX-License-Identifier: Apache-2.0
"""Steps in the text of a kernel: the list of attributes, and the user's line of each."""

from __future__ import annotations

import json


def steps_attribute(steps) -> str:
    """The value of `lacis.steps`. Raises `NotImplementedError` for a step that the compiler does not build yet."""
    for step in steps:
        if not step.ready:
            raise NotImplementedError(f"'{step.mnemonic}' is not built yet")
        if not step.of_loops:
            raise TypeError(f"'{step.mnemonic}' is said of a tensor, not of the loops of a kernel")
    return f"[{', '.join(step.text() for step in steps)}]"


def location(place: tuple[str, int] | None) -> str:
    """`loc("train.py":12:0)`, or `loc(unknown)`."""
    return f"loc({json.dumps(place[0])}:{place[1]}:0)" if place else "loc(unknown)"


def function_location(place: tuple[str, int] | None, steps) -> str:
    """The location of the kernel's function, which carries one location a step where they are known.

    >>> function_location(("train.py", 12), [])
    ' loc("train.py":12:0)'
    """
    own = location(place)
    if any(step.location for step in steps):
        lines = ", ".join(location(step.location) for step in steps)
        return f" loc(fused<[{lines}]>[{own.removeprefix('loc(').removesuffix(')')}])"
    return f" {own}" if place else ""

# SPDX-License-Identifier: Apache-2.0
"""Places in tensors that follow from the coordinates of scores: whole numbers between bounds."""

from __future__ import annotations

from ..capture.chain import Expression

Bounds = tuple[int, int]
_JOINED = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": lambda a, b: (min(p := [x * y for x in a for y in b]), max(p)),
    "neg": lambda a: (-a[1], -a[0]),
    "abs": lambda a: (0 if a[0] <= 0 <= a[1] else min(map(abs, a)), max(map(abs, a))),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
}
_DIVIDED = {
    "floordiv": lambda a, by: (a[0] // by, a[1] // by),
    "mod": lambda a, by: (0, min(a[1], by - 1)),
}


def bounds(body: Expression, lengths: dict[str, int]) -> Bounds | None:
    """The least and the most that a whole number can be, of coordinates that are below these lengths.

    None of what is no whole number, or is not known to be: a kernel divides by constants, and nothing below 0.

    >>> bounds(("sub", ("index", "i"), ("index", "j")), {"i": 4, "j": 8})
    (-7, 3)
    """
    operation, *parts = body
    if operation == "index":
        return 0, lengths[parts[0]] - 1
    if operation == "number":
        return (int(parts[0]),) * 2 if float(parts[0]).is_integer() else None
    if operation == "where":
        first, second = (bounds(part, lengths) for part in parts[1:])
        return None if first is None or second is None else (min(first[0], second[0]), max(first[1], second[1]))
    if operation not in _JOINED and operation not in _DIVIDED:
        return None
    found = [bounds(part, lengths) for part in parts]
    if None in found:
        return None
    if operation in _JOINED:
        return _JOINED[operation](*found)
    whole, (by, most) = found
    return _DIVIDED[operation](whole, by) if whole[0] >= 0 and 0 < by == most else None

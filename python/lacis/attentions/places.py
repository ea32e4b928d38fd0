# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of coordinates and of whole numbers that are read: between which it stays, as a place in a tensor must."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

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
    "where": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    "floordiv": lambda a, by: (a[0] // by[0], a[1] // by[0]),
    "mod": lambda a, by: (0, by[0] - 1 if a[0] < 0 else min(a[1], by[0] - 1)),
}
CONDITIONS = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not")
"""Operations whose results are no numbers."""


class Whole(NamedTuple):
    """The least and the most that a whole number can be, None of a condition.

    No number on the way has a larger magnitude than `largest`; `divides_below_zero` says that one below 0 may be
    divided. `dtype` is that which torch has it in, None of constants.
    """

    bounds: Bounds | None
    largest: int
    divides_below_zero: bool = False
    dtype: torch.dtype | None = None


def whole(body: Expression, lengths: dict[str, int], reads: dict[int, Whole] | None = None) -> Whole | None:
    """What is known of arithmetic and conditions of coordinates, which are below these lengths, and of `reads`.

    None of what is not made of whole numbers, of what torch's dtype may not hold, and of quotients by anything but
    constants above 0.

    >>> whole(("mod", ("sub", ("index", "i"), ("index", "j")), ("number", 3)), {"i": 4, "j": 8})
    Whole(bounds=(0, 2), largest=9, divides_below_zero=True, dtype=torch.int64)
    """
    operation, *parts = body
    if operation == "index":
        return Whole((0, lengths[parts[0]] - 1), lengths[parts[0]], dtype=torch.int64)
    if operation in ("read", "element"):
        return (reads or {}).get(parts[0] if operation == "read" else parts[0][1])
    if operation == "number":
        number = int(parts[0]) if float(parts[0]).is_integer() else None
        return None if number is None else Whole((number, number), abs(number))
    if operation not in CONDITIONS and operation not in _JOINED:
        return None
    found = [whole(part, lengths, reads) for part in parts]
    return None if None in found else _joined(operation, found)


def _joined(operation: str, found: list[Whole]) -> Whole | None:
    largest, divides = max(each.largest for each in found), any(each.divides_below_zero for each in found)
    if operation in CONDITIONS:
        return Whole(None, largest, divides)
    numbers = [each.bounds for each in (found[1:] if operation == "where" else found)]
    if None in numbers:
        return None
    if operation in ("floordiv", "mod"):
        (least, _), (by, most) = numbers
        if not 0 < by == most:
            return None
        largest = max(largest, abs(least // by * by))  # what the remainder is the rest of
        divides = divides or least < 0
    own = _JOINED[operation](*numbers)
    dtypes = [each.dtype for each in found if each.bounds is not None and each.dtype is not None]
    dtype = functools.reduce(torch.promote_types, dtypes) if dtypes else None
    if dtype is not None and not torch.iinfo(dtype).min <= own[0] <= own[1] <= torch.iinfo(dtype).max:
        return None  # torch begins again at the other end
    return Whole(own, max(largest, *map(abs, own)), divides, dtype)


def bounds(body: Expression, lengths: dict[str, int]) -> Bounds | None:
    """The least and the most that a whole number can be, if a kernel has it in integers: these divide nothing below 0.

    >>> bounds(("sub", ("index", "i"), ("index", "j")), {"i": 4, "j": 8})
    (-7, 3)
    """
    found = whole(body, lengths)
    return None if found is None or found.divides_below_zero else found.bounds

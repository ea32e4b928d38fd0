# SPDX-License-Identifier: Apache-2.0
"""What the fields of a step may hold, read from their annotations."""

from __future__ import annotations

import dataclasses
import numbers

from ...errors import ScheduleError

_WORDS = {"str": "a name in quotes", "int": "a whole number"}
_SIZES = "sizes"  # the one field of numbers; the others of any length hold names


def check_fields(step) -> None:
    """Raise `ScheduleError` for a field of another type than it is declared with."""
    for field in dataclasses.fields(step):
        declared = str(field.type).split(" | ")
        value = getattr(step, field.name)
        if field.name == "location" or (value is None and "None" in declared):
            continue
        if declared[0] in _WORDS and not _is(value, declared[0]):
            _fail(step, f"'{field.name}' is {_WORDS[declared[0]]}, not {_said(value)}")
        if declared == ["tuple"]:
            _check_items(step, field.name, value)


def _check_items(step, name: str, values) -> None:
    kind = "int" if name == _SIZES else "str"
    pairs = [value for value in values if isinstance(value, (tuple, list))]
    if pairs:
        written = ", ".join(map(repr, pairs[0]))
        _fail(step, f"'{name}' are written one after the other: {written}, not {pairs[0]!r}")
    wrong = [value for value in values if not _is(value, kind)]
    if wrong:
        _fail(step, f"each of '{name}' is {_WORDS[kind]}, not {_said(wrong[0])}")


def _is(value, kind: str) -> bool:
    if kind == "str":
        return isinstance(value, str)
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _said(value) -> str:
    return repr(value) if isinstance(value, (str, int, float)) else f"a {type(value).__name__}"


def _fail(step, what: str):
    raise ScheduleError(f"{step.mnemonic}: {what}", location=step.location)

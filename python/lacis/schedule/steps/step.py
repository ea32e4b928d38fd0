# SPDX-License-Identifier: Apache-2.0
"""What all verbs share: a frozen record, its text in the dialect, and the user's line beside it."""

from __future__ import annotations

import dataclasses
import json
from typing import ClassVar

from ...errors import ScheduleError, format_location, user_location
from .fields import check_fields

STEPS: dict[str, type[Step]] = {}
HERE = object()


@dataclasses.dataclass(frozen=True)
class Step:
    """One verb with its arguments. Where it was written counts neither for equality nor for any key."""

    location: tuple[str, int] | None = dataclasses.field(
        default_factory=user_location, kw_only=True, compare=False, repr=False
    )

    mnemonic: ClassVar[str]
    ready: ClassVar[bool] = False  # does the compiler build it already?
    of_loops: ClassVar[bool] = True  # says how loops run, rather than which entries exist and how they are stored

    of_modules: ClassVar[bool] = False  # says something of a module that attends, and nothing of a tensor

    def __post_init__(self):
        check_fields(self)

    @classmethod
    def of_fields(cls, fields: dict, location=None) -> Step:
        """The record that a text or a file names field by field."""
        return cls(**fields, location=location)

    def check(self, earlier: list[Step]) -> None:
        """Raise `ScheduleError` when this contradicts a step recorded before; `earlier` are those of the handle."""

    def contradict(self, other: Step, reason: str):
        """Raise the error that names both lines."""
        where = format_location(other.location)
        raise ScheduleError(
            f"{self.mnemonic}: {reason}\n{where}: note: {other.mnemonic} was recorded here: {other.describe()}",
            location=self.location,
        )

    def of_part(self, part: str) -> Step:
        """The same said of the loops of a part of a sum: `ell.j` for `j`.

        Raises `ScheduleError` when this says nothing of loops.
        """
        fields = {name: value for name in _LOOPS if (value := getattr(self, name, None))}
        if not fields:
            reason = "it names no loop of its own, say it of the whole parameter"
            raise ScheduleError(f"{self.mnemonic}: {reason}", location=self.location)
        within = {
            name: _in_part(part, value) if isinstance(value, str) else tuple(_in_part(part, loop) for loop in value)
            for name, value in fields.items()
        }
        return dataclasses.replace(self, **within)

    def parts_named(self) -> set[str]:
        """The parts of a sum whose loops are named with them."""
        values = [getattr(self, name, None) or () for name in _LOOPS]
        loops = [loop for value in values for loop in ((value,) if isinstance(value, str) else value)]
        return {loop.split(".")[-2] for loop in loops if "." in loop}

    def arguments(self) -> dict:
        """The fields, by name; those that have their default are left out."""
        fields = [f for f in dataclasses.fields(self) if f.name != "location"]
        return {f.name: value for f in fields if (value := getattr(self, f.name)) != f.default}

    def words(self) -> dict:
        """The fields as they are written in a schedule, by name."""
        return self.arguments()

    def describe(self) -> str:
        """The verb as it is written in a schedule: `split("i", 32)`; behind a field that is left out, with the name."""
        words, named, written = self.words(), False, []
        for name in (field.name for field in dataclasses.fields(self) if field.name != "location"):
            if name not in words:
                named = True
                continue
            values = words[name] if isinstance(words[name], tuple) else (words[name],)
            written += [f"{name}={_word(value)}" if named else _word(value) for value in values]
        return f"{self.mnemonic}({', '.join(written)})"

    def text(self) -> str:
        """The step as an attribute of the dialect: `#lacis.split<loop = "i", factor = 32>`."""
        fields = ", ".join(f"{name} = {_attribute(value)}" for name, value in self.arguments().items())
        return f"#lacis.{self.mnemonic}<{fields}>" if fields else f"#lacis.{self.mnemonic}"


_LOOPS = ("loop", "loops", "outer", "inner")  # the fields that name loops, in every verb


def _in_part(part: str, loop: str) -> str:
    """The part's name stands before the letters, behind that of a copy of the nest."""
    copy, dot, letters = loop.rpartition(".")
    return f"{copy}{dot}{part}.{letters}"


def _word(value) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    return value.__name__ if isinstance(value, type) else repr(value)


def _attribute(value) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_attribute, value))}]"
    if isinstance(value, str) and value.startswith("#"):
        return value
    return json.dumps(value)


def primitive(cls):
    """Class decorator: make a verb known to handles under its mnemonic."""
    STEPS[cls.mnemonic] = cls
    return cls


class Variadic(Step):
    """A step whose verb takes any number of values, kept in its last field; the fields before it come first.

    What is `kw_only` is given by name.
    """

    def __init__(self, *values, location=HERE, **named):
        *first, rest = (f.name for f in dataclasses.fields(self) if not f.kw_only)
        defaults = {f.name: f.default for f in dataclasses.fields(self) if f.kw_only and f.name != "location"}
        given = dict(zip(first, values))
        if len(values) > len(first):
            given[rest] = values[len(first) :]
        given.setdefault(rest, ())
        twice, unknown = set(given) & set(named) - {rest}, set(named) - {*first, rest, *defaults}
        missing = set(first) - set(given) - set(named)
        for names, what in ((twice, "given twice"), (unknown, "unknown"), (missing, "missing")):
            if names:
                raise TypeError(f"{self.mnemonic}: argument '{min(names)}' is {what}")
        for name, value in (defaults | given | named).items():
            object.__setattr__(self, name, tuple(value) if name == rest else value)
        object.__setattr__(self, "location", user_location() if location is HERE else location)
        check_fields(self)

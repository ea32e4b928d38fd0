# SPDX-License-Identifier: Apache-2.0
"""What all verbs share: a frozen record, and the user's line beside it."""

from __future__ import annotations

import dataclasses
import json
from typing import ClassVar

from ...errors import ScheduleError, format_location

STEPS: dict[str, type[Step]] = {}


@dataclasses.dataclass(frozen=True)
class Step:
    """One verb with its arguments. Where it was written counts neither for equality nor for any key."""

    location: tuple[str, int] | None = dataclasses.field(default=None, kw_only=True, compare=False, repr=False)

    mnemonic: ClassVar[str]
    ready: ClassVar[bool] = False  # does the compiler build it already?

    def check(self, earlier: list[Step]) -> None:
        """Raise `ScheduleError` when this contradicts a step recorded before; `earlier` are those of the handle."""

    def contradict(self, other: Step, reason: str):
        """Raise the error that names both lines."""
        where = format_location(other.location)
        raise ScheduleError(
            f"{self.mnemonic}: {reason}\n{where}: note: {other.mnemonic} was recorded here: {other.describe()}",
            location=self.location,
        )

    def arguments(self) -> dict:
        """The fields that the user gave, by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "location"}

    def describe(self) -> str:
        """The verb as it is written in a schedule."""
        values = [v for v in self.arguments().values() if v is not None]
        flat = [x for v in values for x in (v if isinstance(v, tuple) else (v,))]
        return f"{self.mnemonic}({', '.join(map(_word, flat))})"

    def text(self) -> str:
        """The step as an attribute of the dialect: `#lacis.split<loop = "i", factor = 32>`."""
        given = {k: v for k, v in self.arguments().items() if v is not None}
        return f"#lacis.{self.mnemonic}<{', '.join(f'{k} = {_attribute(v)}' for k, v in given.items())}>"


def _word(value) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


def _attribute(value) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_attribute, value))}]"
    return json.dumps(value)


def primitive(cls):
    """Class decorator: make a verb known to handles under its mnemonic."""
    STEPS[cls.mnemonic] = cls
    return cls


class Variadic(Step):
    """A step whose verb takes any number of values, kept in its one field."""

    def __init__(self, *values, location=None):
        (name,) = (f.name for f in dataclasses.fields(self) if f.name != "location")
        object.__setattr__(self, name, tuple(values))
        object.__setattr__(self, "location", location)

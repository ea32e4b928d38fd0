# SPDX-License-Identifier: Apache-2.0
"""What arrays are derived by, as an artifact says it: the name of a function, its parameters, and what it is given."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping, Sequence


class Cost(typing.NamedTuple):
    """What work takes on a processor of a GPU; the fields are those of `#lacis.cost`, see there."""

    bytes: int
    products: int
    clock: int
    panel: int
    start: int
    part: int
    move: int
    segment: int
    kept: int


@dataclasses.dataclass(frozen=True)
class Derivation:
    """A function of `lacis.patterns.functions` with its parameters; `source` is what it is given, None a structure.

    >>> step = Derivation.index("(i, j) -> (j : dense, i : compressed<unique=false>, link)")
    >>> step.function, step.source is None, list(step.given)
    ('index', True, ['format'])
    """

    function: str
    parameters: tuple[tuple[str, object], ...]
    source: Derivation | None = None

    @staticmethod
    def index(format: str) -> Derivation:
        """A companion index with this format, as text."""
        return Derivation("index", (("format", format),))

    @staticmethod
    def of(records: Sequence[Mapping], number: int) -> Derivation:
        """Record `number` of the list `derived` of an artifact; equal ones are one object."""
        record = records[number]
        source = record["source"]
        given = sorted(record["parameters"].items())
        parameters = tuple((name, Cost(**value) if isinstance(value, Mapping) else value) for name, value in given)
        before = None if isinstance(source, Mapping) else Derivation.of(records, source)
        made = Derivation(record["function"], parameters, before)
        return _MADE.setdefault(made, made)

    @property
    def given(self) -> dict[str, object]:
        """The parameters by name."""
        return dict(self.parameters)

    @property
    def line(self) -> int:
        """The bytes of a line of tiles whose chunks are exchanged in a copy of the values, 0 for none."""
        return self.given.get("swizzle", 0)

    @functools.cached_property
    def of_pattern(self) -> Derivation:
        """The same arrays of the pattern: how a copy of the values lies does not matter to them."""
        kept = tuple(pair for pair in self.parameters if pair[0] != "swizzle")
        return Derivation(self.function, kept, self.source and self.source.of_pattern)

    def __str__(self) -> str:
        format = self.given.get("format")
        return self.function if format is None else f"{self.function} {format}"


Array = tuple[str, Derivation | str, str]
"""An array of a packed operand: its part, the step that makes it ("" for its own arrays), its name."""


_MADE: dict[Derivation, Derivation] = {}  # as many as the kernels of a process ask for

# SPDX-License-Identifier: Apache-2.0
"""Chains: statements on one pattern that are one kernel."""

from __future__ import annotations

import dataclasses
import functools
import string

import torch

from ..errors import DataError
from .spec import Operand

# An expression: ("read", number of an input), ("number", value), ("index", letter), which is the coordinate of an
# entry, or (operation, expressions…); ("kept", limit, seed, b, h, i, j) says whether the random bits of a place are not
# below the limit; ("element", ("read", number), places…) is that of a whole input, where ("end", place) counts from the
# end below 0. emit/chain.py writes it.
Expression = tuple


@dataclasses.dataclass(frozen=True)
class Read:
    """An operand of the kernel, or what the statement of that name made, with its letters.

    `whole`: all of it, of which the statement reads elements at places that it computes; its axes are no loops.
    """

    name: str
    letters: tuple[str, ...]
    whole: bool = False


@dataclasses.dataclass(frozen=True)
class Statement:
    """`name[letters] = reduce(body(inputs) over the letters of the inputs that are not there)`; `reduce` is add or max.

    `sampled`: on the pattern.
    """

    name: str
    letters: tuple[str, ...]
    inputs: tuple[Read, ...]
    body: Expression
    sampled: bool
    reduce: str | None = None

    @property
    def loops(self) -> tuple[str, ...]:
        """All letters, those of the result first."""
        read = (letter for read in self.inputs if not read.whole for letter in read.letters)
        return tuple(dict.fromkeys([*self.letters, *read]))


@dataclasses.dataclass(frozen=True)
class ChainSpec:
    """Statements on one pattern, of which `returned` make the results, the last one where that is empty.

    Operand `packed` is the pattern. Results after the first are dense; the first `rounded` results are of `dtype`, the
    others float32 at least.

    `divisible` and `uneven` as in `KernelSpec`; `sizes` has letters whose sizes are compiled in: all that the pattern
    lacks. `rolls`: the default schedule makes one loop of a softmax and what follows it, on `"loops"`, on `"tiles"`
    or on `"wide tiles"`, whose rounds may take 128 columns; empty: it does not. `full`: every place of a stored block
    is an entry.
    """

    name: str
    operands: tuple[Operand, ...]
    packed: int
    statements: tuple[Statement, ...]
    dtype: torch.dtype
    divisible: tuple[tuple[str, int], ...] = ()
    uneven: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    steps: tuple = ()
    rolls: str = ""
    full: bool = False
    returned: tuple[str, ...] = ()
    rounded: int = 1
    location: tuple[str, int] | None = dataclasses.field(default=None, compare=False)

    @functools.cached_property
    def outputs(self) -> tuple[Statement, ...]:
        """The statements that make the results."""
        by_name = {statement.name: statement for statement in self.statements}
        return tuple(by_name[name] for name in self.returned) or self.statements[-1:]

    def dtype_of(self, output: Statement) -> torch.dtype:
        """That of a result."""
        if output in self.outputs[: self.rounded]:
            return self.dtype
        return torch.promote_types(self.dtype, torch.float32)

    @property
    def output(self) -> Statement:
        return self.outputs[0]

    @property
    def sampled(self) -> bool:
        return self.output.sampled


class Trace:
    """The statements so far; `pattern` is the name and the letters of the pattern, once an einsum has sampled on it."""

    def __init__(self, operands=()):
        self.operands = set(operands)  # names that no statement takes
        self.statements: list[Statement] = []
        self.pattern: tuple[str, tuple[str, ...]] | None = None
        self.sizes: dict[str, int] = {}
        self.softmaxes: dict = {}  # by the number of an object and a letter: the object, and the statements

    def add(self, name: str, letters, inputs, body, sampled: bool, reduce=None) -> Read:
        taken = self.operands | {statement.name for statement in self.statements}
        name = next(n for n in (name, *(f"{name}{k}" for k in range(1, len(taken) + 2))) if n not in taken)
        self.statements.append(Statement(name, tuple(letters), tuple(inputs), body, sampled, reduce))
        return Read(name, tuple(letters))

    def letter(self, wanted: str, size: int) -> str:
        """A letter of the whole chain for a new axis of an einsum."""
        free = (letter for letter in (wanted, *string.ascii_letters) if letter not in self.sizes)
        letter = next(free, None)
        if letter is None:
            raise DataError("kernel: a chain has 52 letters at the most")
        self.sizes[letter] = size
        return letter

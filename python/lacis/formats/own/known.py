# SPDX-License-Identifier: Apache-2.0
"""What the text of a method shows of its values: which are no less than 0, and which loops end by themselves."""

from __future__ import annotations

_KEEP = ("arith.addi", "arith.muli", "arith.shrsi", "arith.floordivsi", "arith.andi")  # natural numbers stay natural


class Known:
    """Facts of the symbols of one method, by their names."""

    def __init__(self):
        self._natural: set[str] = set()
        self._constants: dict[str, int] = {}
        self._sums: dict[str, tuple[str, int]] = {}
        self._less: dict[str, tuple[str, str]] = {}
        self._both: dict[str, tuple[str, str]] = {}

    def is_natural(self, symbol) -> bool:
        return symbol.name in self._natural

    def note_natural(self, symbol) -> None:
        self._natural.add(symbol.name)

    def note_constant(self, symbol, value: int) -> None:
        self._constants[symbol.name] = value
        if value >= 0:
            self.note_natural(symbol)

    def note(self, operation: str, result, left, right) -> None:
        if operation in _KEEP and self.is_natural(left) and self.is_natural(right):
            self.note_natural(result)
        pair = (left.name, right.name)
        if operation == "arith.addi" and (right.name in self._constants or left.name in self._constants):
            base, other = pair if pair[1] in self._constants else pair[::-1]
            self._sums[result.name] = (base, self._constants[other])
        elif operation == "slt":
            self._less[result.name] = pair
        elif operation == "sgt":
            self._less[result.name] = pair[::-1]
        elif operation == "arith.andi":
            self._both[result.name] = pair

    def ends(self, condition, before, after, made) -> bool:
        """Does a loop end whatever arrays say?

        One of its numbers goes up by a constant in each round, and the condition holds only as long as that number, or
        a sum of it and a constant, is less than the level's size or a constant.
        """
        climbs = {b.name for b, a, m in zip(before, after, made) if self._step(m.name, a.name) >= 1}
        for less, limit in self._tests(condition.name):
            base = self._sums.get(less, (less, 0))[0]
            if base in climbs and limit in self._natural:
                return True
        return False

    def _step(self, made: str, before: str) -> int:
        base, step = self._sums.get(made, ("", 0))
        return step if base == before else 0

    def _tests(self, condition: str):
        """The comparisons that all hold where the condition does."""
        if condition in self._both:
            for side in self._both[condition]:
                yield from self._tests(side)
        elif condition in self._less:
            yield self._less[condition]

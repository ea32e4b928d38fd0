# SPDX-License-Identifier: Apache-2.0
"""Methods of level kinds run on symbols, which gives the text of their operations."""

from __future__ import annotations

import copy

from ...errors import FormatError
from .known import Known
from .language import as_tuple, like, running
from .symbol import BIT, INDEX, Symbol


class Code:
    """The text of one method, operation by operation. `what` begins messages: the kind and its method."""

    def __init__(self, what: str):
        self.what = what
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.scopes = [0]  # of the regions around what is written now
        self.opened = 0
        self.known = Known()

    def write(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def fresh(self, type: str = INDEX) -> Symbol:
        self.count += 1
        return Symbol(self, f"%{self.count}", type)

    def op(self, text: str, type: str = INDEX) -> Symbol:
        result = self.fresh(type)
        self.write(f"{result.name} = {text}")
        return result

    def constant(self, value) -> Symbol:
        if isinstance(value, bool):
            return self.op(f"arith.constant {str(value).lower()}", BIT)
        result = self.op(f"arith.constant {value} : index")
        self.known.note_constant(result, value)
        return result

    def symbol(self, value, type: str | None = None) -> Symbol:
        """A value of this code; integers and truth values become constants. Refuses any other."""
        if isinstance(value, (bool, int)):
            value = self.constant(value)
        if not isinstance(value, Symbol):
            raise FormatError(f"{self.what}: a {_name(value)} is no integer of a kernel")
        if value.code is not self:
            raise FormatError(f"{self.what}: a value of another method, '{value.code.what}', is used")
        if value.scope not in self.scopes:
            raise FormatError(f"{self.what}: a value made inside of a loop is used behind it; give it as its state")
        if type == INDEX and value.type == BIT:  # as Python and torch count truth values
            return self.op(f"arith.index_castui {value.name} : i1 to index")
        if type is not None and value.type != type:
            raise FormatError(f"{self.what}: a truth value is needed, not a number; write value != 0")
        return value

    def binary(self, operation: str, left, right) -> Symbol:
        left, right = self.symbol(left, INDEX), self.symbol(right, INDEX)
        result = self.op(f"{operation} {left.name}, {right.name} : index")
        self.known.note(operation, result, left, right)
        return result

    def bitwise(self, operation: str, left, right) -> Symbol:
        type = left.type if isinstance(left, Symbol) else right.type
        left, right = self.symbol(left, type), self.symbol(right, type)
        result = self.op(f"{operation} {left.name}, {right.name} : {type}", type)
        self.known.note(operation, result, left, right)
        return result

    def compare(self, predicate: str, left, right) -> Symbol:
        left = self.symbol(left)
        right = self.symbol(right, left.type)
        result = self.op(f"arith.cmpi {predicate}, {left.name}, {right.name} : {left.type}", BIT)
        self.known.note(predicate, result, left, right)
        return result

    def divided(self, left, right) -> Symbol:
        """Rounded down, as Python does."""
        if _is_power(right):
            left = self.symbol(left, INDEX)
            shift = "arith.shrui" if self.known.is_natural(left) else "arith.shrsi"
            result = self.binary(shift, left, right.bit_length() - 1)
            if self.known.is_natural(left):
                self.known.note_natural(result)
            return result
        return self.binary("arith.floordivsi", left, self._divisor(right))

    def remainder(self, left, right) -> Symbol:
        if _is_power(right):
            return self.bitwise("arith.andi", self.symbol(left, INDEX), right - 1)
        right = self._divisor(right)
        return left - self.binary("arith.floordivsi", left, right) * right

    def _divisor(self, value):
        """A number from 1 on: a processor stops at a division by what a damaged array says."""
        if isinstance(value, int):
            if value < 1:
                raise FormatError(f"{self.what}: a divisor is 1 or more, not {value}")
            return value
        return self.where(value > 0, value, 1)

    def where(self, condition, then, otherwise) -> Symbol:
        condition = self.symbol(condition, BIT)
        then = self.symbol(then)
        otherwise = self.symbol(otherwise, then.type)
        return self.op(f"arith.select {condition.name}, {then.name}, {otherwise.name} : {then.type}", then.type)

    def _of_bits(self, operation: str, value) -> Symbol:
        low = self.op(f"arith.index_cast {self.symbol(value, INDEX).name} : index to i32", "i32")
        count = self.op(f"{operation} {low.name} : i32", "i32")
        return self.op(f"arith.index_cast {count.name} : i32 to index")

    def popcount(self, value) -> Symbol:
        return self._of_bits("math.ctpop", value)

    def ctz(self, value) -> Symbol:
        return self._of_bits("math.cttz", value)

    def field(self, array: str, index, unsigned=None) -> Symbol:
        """An element; the operation knows its type."""
        return self.op(f"lacis.field @{array}[{self.symbol(index, INDEX).name}]")

    def level_size(self) -> Symbol:
        result = self.op("lacis.level_size")
        self.known.note_natural(result)
        return result

    # Loops: a region is a scope, whose values end with it.

    def _scope(self, count: int) -> tuple[int, list[Symbol]]:
        """A new scope, and its arguments."""
        self.opened += 1
        scope = self.opened
        self.scopes.append(scope)
        arguments = [self.fresh() for _ in range(count)]
        self.scopes.pop()
        return scope, arguments

    def _enter(self, scope: int) -> None:
        self.scopes.append(scope)
        self.depth += 1

    def _leave(self, text: str) -> None:
        self.write(text)
        self.depth -= 1
        self.scopes.pop()

    def _state(self, loop: str, values, count: int) -> list[Symbol]:
        found = [self.symbol(value, INDEX) for value in as_tuple(values)]
        if len(found) != count:
            raise FormatError(f"{self.what}: the body of lacis.{loop} answers {len(found)} values, not {count}")
        return found

    def fori(self, count, body, start):
        states = [self.symbol(value, INDEX) for value in as_tuple(start)]
        zero, one, count = self.constant(0), self.constant(1), self.symbol(count, INDEX)
        results = [self.fresh() for _ in states]
        scope, (round, *inside) = self._scope(1 + len(states))
        types = ", ".join([INDEX] * len(states))
        head = f"{_names(results)} = scf.for {round.name} = {zero.name} to {count.name} step {one.name}"
        self.write(f"{head} iter_args({_carried(inside, states)}) -> ({types}) {{")
        self._enter(scope)
        made = self._state("fori", body(round, like(start, inside)), len(states))
        self._leave(f"scf.yield {_names(made)} : {types}")
        self.write("}")
        return like(start, results)

    def whilei(self, condition, body, start):
        """Written without a number of the round first, then with one where nothing else shows that the loop ends."""
        start_states = [self.symbol(value, INDEX) for value in as_tuple(start)]
        written, count, opened, known = len(self.lines), self.count, self.opened, copy.deepcopy(self.known)
        results, ends = self._while(condition, body, start, start_states, counts=False)
        if not ends:
            del self.lines[written:]
            self.count, self.opened, self.known = count, opened, known
            results, _ = self._while(condition, body, start, start_states, counts=True)
        return like(start, results)

    def _while(self, condition, body, start, states, counts: bool):
        """The results, and whether the loop ends by itself. A number of the round comes before what is carried."""
        number = [self.constant(0)] if counts else []
        most = self.level_size() + 64 if counts else None
        states = number + states
        results = [self.fresh() for _ in states]
        types = ", ".join([INDEX] * len(states))
        (first, before), (second, after) = self._scope(len(states)), self._scope(len(states))
        self.write(f"{_names(results)} = scf.while ({_carried(before, states)}) : ({types}) -> ({types}) {{")
        self._enter(first)
        holds = self.symbol(condition(like(start, before[len(number) :])), BIT)
        goes_on = holds & (before[0] < most) if counts else holds
        self._leave(f"scf.condition({goes_on.name}) {_names(before)} : {types}")
        self.write("} do {")
        self.write(f"^bb0({', '.join(f'{a.name}: index' for a in after)}):")
        self._enter(second)
        made = self._state("whilei", body(like(start, after[len(number) :])), len(states) - len(number))
        round = [after[0] + 1] if counts else []
        self._leave(f"scf.yield {_names([*round, *made])} : {types}")
        self.write("}")
        return results[len(number) :], self.known.ends(holds, before, after, made)


def trace(what: str, count: int, method) -> tuple[list[str], list[Symbol], list[Symbol]]:
    """The lines of a method, its `count` arguments and what it answers. `method` takes the code and the arguments."""
    code = Code(what)
    arguments = [code.fresh() for _ in range(count)]
    with running(code):
        answers = [code.symbol(value) for value in as_tuple(method(code, *arguments))]
    return code.lines, arguments, answers


def _is_power(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0 and value & (value - 1) == 0


def _carried(arguments, states) -> str:
    return ", ".join(f"{a.name} = {b.name}" for a, b in zip(arguments, states))


def _names(symbols) -> str:
    return ", ".join(symbol.name for symbol in symbols)


def _name(value) -> str:
    return "None" if value is None else type(value).__name__

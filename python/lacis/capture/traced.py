# SPDX-License-Identifier: Apache-2.0
"""What stands for tensors while a function of einsums, softmax and arithmetic is traced."""

from __future__ import annotations

import torch

from ..errors import DataError
from .chain import Expression, Read, Trace

_CAN = "a chain takes einsum, softmax, map, arithmetic, comparisons, torch.where and functions like torch.exp"
# Functions of torch, and methods of tensors, by the operation that emit/chain.py writes.
FUNCTIONS = {
    "where": "where", "exp": "exp", "exp2": "exp2", "log": "log", "tanh": "tanh", "sqrt": "sqrt", "erf": "erf",
    "abs": "abs", "neg": "neg", "maximum": "maximum", "minimum": "minimum", "logical_and": "and", "logical_or": "or",
    "logical_not": "not", "add": "add", "sub": "sub", "mul": "mul", "div": "div",
}  # fmt: skip
_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "mod", "neg": "neg",
    "abs": "abs", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne", "and": "and", "or": "or",
    "invert": "not",
}  # fmt: skip
_SWAPPED = {"radd": "add", "rsub": "sub", "rmul": "mul", "rtruediv": "div", "rand": "and", "ror": "or"}
_LOGIC = {"and", "or", "not"}
_BOOL = {"lt", "le", "gt", "ge", "eq", "ne", "kept", *_LOGIC}


class Traced:
    """Arithmetic on what statements made; `divisor` is what a softmax left to be divided by."""

    __hash__ = object.__hash__

    def __init__(self, trace: Trace, reads, body: Expression, letters, sampled: bool, divisor: Read | None = None):
        self.trace, self.reads, self.body = trace, tuple(reads), body
        self.letters, self.sampled, self.divisor = tuple(letters), sampled, divisor
        self.used: tuple[str, ...] = ()

    @classmethod
    def of(cls, trace: Trace, read: Read, sampled: bool, divisor: Read | None = None) -> Traced:
        return cls(trace, (read,), ("read", 0), read.letters, sampled, divisor)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.trace.sizes[letter] for letter in self.letters)

    @property
    def is_bool(self) -> bool:
        return self.body[0] in _BOOL

    def whole(self) -> Traced:
        """Divided by what is left; 0 where that is: no entry, or none that is not masked."""
        if self.divisor is None:
            return self
        own = Traced(self.trace, self.reads, self.body, self.letters, self.sampled)
        return combine("share", own, Traced.of(self.trace, self.divisor, False))

    def read(self, name: str = "t") -> Read:
        """What a statement reads of it; arithmetic becomes a statement first."""
        if self.body == ("read", 0) and self.divisor is None:
            return self.reads[0]
        own = self.whole()
        if own.is_bool:
            raise DataError("kernel: a comparison is no number; torch.where makes one of it")
        return self.trace.add(name, own.letters, own.reads, own.body, own.sampled)

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        name = getattr(function, "__name__", str(function))
        if name == "clamp":
            return arguments[0].clamp(*arguments[1:], **(keywords or {}))
        if keywords or name not in FUNCTIONS:
            raise DataError(f"kernel: 'torch.{name}' cannot be traced; {_CAN}")
        return combine(FUNCTIONS[name], *arguments)

    def map(self, function) -> Traced:
        """`function(value, *coordinates)` of each entry, as `PackedTensor.map`."""
        if not self.sampled:
            raise DataError("kernel: map is of entries of the pattern, which have coordinates; an einsum samples on it")
        made = function(self.whole(), *coordinates(self.trace, self.letters))
        if not isinstance(made, Traced) or made.letters != self.letters:
            raise DataError(f"kernel: the function of map answers {type(made).__name__}, no number of an entry")
        return made

    def clamp(self, min: float | None = None, max: float | None = None) -> Traced:
        """At least `min` and at most `max`."""
        made = self if min is None else combine("maximum", self, min)
        return made if max is None else combine("minimum", made, max)

    def __bool__(self):
        raise DataError("kernel: a branch looks at values, which are not there while the function is traced")

    def __getattr__(self, name: str):
        if name not in FUNCTIONS or name == "where":
            raise DataError(f"kernel: a traced tensor has no '{name}'; {_CAN}")
        return lambda *others: combine(FUNCTIONS[name], self, *others)


class Argument(Traced):
    """An argument of the function, whose axes get letters where it is used; `used` are those of its first use."""

    def __init__(self, trace: Trace, name: str, shape, is_pattern: bool):
        super().__init__(trace, (), ("read", 0), (), False)
        self.name, self.is_pattern, self.own_shape = name, is_pattern, tuple(shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.own_shape

    def at(self, letters) -> Traced:
        """The operand with these letters for its axes."""
        return Traced.of(self.trace, Read(self.name, tuple(letters)), False)

    def as_table(self) -> Traced:
        """All of the operand, for ("element", …)."""
        return table(self.trace, self.name, len(self.shape))


def table(trace: Trace, name: str, axes: int) -> Traced:
    """All of an operand, of which elements are read; its axes have letters that nothing else has."""
    return Traced(trace, (Read(name, tuple(f"{name}_{axis}" for axis in range(axes)), True),), ("read", 0), (), False)


def _operator(name: str, swapped: bool = False):
    def method(self, *others):
        if name in _LOGIC and not all(map(_is_bool, (self, *others))):
            raise DataError("kernel: '&', '|' and '~' of numbers are of their bits; a chain has them of comparisons")
        return combine(name, *((*others, self) if swapped else (self, *others)))

    return method


for _table, _back in ((_OPERATORS, False), (_SWAPPED, True)):
    for _name, _operation in _table.items():
        setattr(Traced, f"__{_name}__", _operator(_operation, _back))


def _is_bool(argument) -> bool:
    return argument.is_bool if isinstance(argument, Traced) else isinstance(argument, bool)


def _typed(operation: str, arguments):
    """What is made of the arguments: in arithmetic and comparisons a condition is 1 or 0, and a number is one where
    conditions are joined."""
    if operation in _LOGIC:
        return [a if _is_bool(a) or not isinstance(a, Traced) else combine("ne", a, 0.0) for a in arguments]
    if operation not in _BOOL and len(arguments) > 1 and all(map(_is_bool, arguments)):
        raise DataError(f"kernel: '{operation}' of conditions; & and | join them, torch.where makes numbers of them")
    return [combine("where", a, 1.0, 0.0) if isinstance(a, Traced) and a.is_bool else a for a in arguments]


def _chosen(condition, one, other) -> Traced:
    """`torch.where`, of conditions too."""
    if not isinstance(condition, Traced) or not condition.is_bool:
        raise DataError("kernel: torch.where chooses by a comparison")
    if _is_bool(one) and _is_bool(other):
        return combine("or", combine("and", condition, one), combine("and", combine("not", condition), other))
    return _combined("where", condition, *_typed("number", (one, other)))


def combine(operation: str, *arguments) -> Traced:
    """An operation on elements; an operand without letters is aligned at the last axes, as torch does."""
    if operation == "where":
        return _chosen(*arguments)
    return _combined(operation, *_typed(operation, arguments))


def _combined(operation: str, *arguments) -> Traced:
    made = [a for a in arguments if isinstance(a, Traced) and not isinstance(a, Argument)]
    if not made:
        raise DataError("kernel: arithmetic on arguments alone, whose axes have no letters yet; do it before the call")
    first = max(made, key=lambda t: (t.sampled, len(t.letters)))
    reads: list[Read] = []
    parts: list[Expression] = [_part(argument, first, reads) for argument in arguments]
    if operation in _LOGIC:
        parts = [("ne", part, ("number", 0.0)) if part[0] == "number" else part for part in parts]
    return Traced(first.trace, reads, (operation, *parts), first.letters, first.sampled)


def _part(argument, first: Traced, reads: list[Read]) -> Expression:
    """The expression of an argument, its reads among those of the others."""
    if isinstance(argument, (int, float)):
        return ("number", float(argument))
    if isinstance(argument, Argument) and not argument.is_pattern and len(argument.shape) <= len(first.letters):
        letters = first.letters[len(first.letters) - len(argument.shape) :]
        wanted = tuple(first.trace.sizes[letter] for letter in letters)
        if wanted != argument.shape:
            raise DataError(f"kernel: arithmetic on axes {list(wanted)} with an operand {list(argument.shape)}")
        argument = argument.at(letters)
    if not isinstance(argument, Traced) or isinstance(argument, Argument):
        what = "a pattern" if isinstance(argument, Argument) else type(argument).__name__
        raise DataError(f"kernel: {what} in arithmetic; it takes numbers, what einsum made, and arguments that fit it")
    argument = argument.whole()
    if not set(argument.letters) <= set(first.letters):
        raise DataError(
            f"kernel: arithmetic on [{', '.join(first.letters)}] and [{', '.join(argument.letters)}]; an einsum brings "
            "them to the same letters"
        )
    numbers = []
    for read in argument.reads:
        if read not in reads:
            reads.append(read)
        numbers.append(reads.index(read))
    return argument.body if numbers == [*range(len(numbers))] else _renumbered(argument.body, numbers)


def _renumbered(body: Expression, numbers: list[int]) -> Expression:
    if body[0] == "read":
        return ("read", numbers[body[1]])
    return (body[0], *(_renumbered(part, numbers) if isinstance(part, tuple) else part for part in body[1:]))


def coordinates(trace: Trace, letters) -> list[Traced]:
    """The coordinates of entries as numbers, which functions of positions are traced with."""
    return [Traced(trace, (), ("index", letter), letters, True) for letter in letters]


def is_traced(operands) -> bool:
    return any(isinstance(operand, Traced) for operand in operands)


def arguments_of(trace: Trace, names, operands, is_pattern) -> list[Argument]:
    """What stands for the operands of a call."""
    shapes = [operand.shape for operand in operands]
    return [Argument(trace, *each) for each in zip(names, shapes, map(is_pattern, operands))]


def finished(trace: Trace, result) -> tuple[str, ...]:
    """The statements that make the results, of which a single one is the last; `DataError` for what none can make."""
    results = result if isinstance(result, tuple) else (result,)
    for each in results or ((),):
        if not isinstance(each, Traced) or isinstance(each, Argument):
            raise DataError(f"kernel: the function returns {type(each).__name__}, not a tensor that a statement makes")
    if trace.pattern is None:
        raise DataError("kernel: no einsum samples on a pattern")
    if any(each.sampled for each in results[1:]):
        raise DataError("kernel: a result after the first is on the pattern; return that first")
    names: list[str] = []
    for number, each in enumerate(results):
        read = each.read("o" if number == 0 else "r")
        is_read = any(other == read for statement in trace.statements for other in statement.inputs)
        if read.name in names or (is_read if len(results) > 1 else trace.statements[-1].name != read.name):
            read = trace.add("o", read.letters, (read,), ("read", 0), each.sampled)
        names.append(read.name)
    return tuple(names)


def dtype_of(operands) -> torch.dtype:
    """The dtype of the operands: a half type where others have the float32 that it is computed in."""
    dtypes = {operand.dtype for operand in operands if operand.dtype.is_floating_point}
    halves = dtypes & {torch.bfloat16, torch.float16}
    if len(dtypes) == 1 or (len(halves) == 1 and dtypes - halves == {torch.float32}):
        return (halves or dtypes).pop()
    found = ", ".join(sorted(map(str, dtypes)))
    raise DataError(f"kernel: operands are {found}; a chain has one dtype, or a half type and float32")

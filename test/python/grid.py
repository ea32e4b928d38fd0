# SPDX-License-Identifier: Apache-2.0
"""Every level kind at every place of a small tree of levels: the texts, made from the registry of kinds."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re

import conformance
import expressions
import lacis
import refused
import torch
import user_kinds
from lacis.errors import FormatError
from lacis.formats import Format
from lacis.formats.digit import Digit
from lacis.formats.level import COORDINATES, EXTENTS
from lacis.formats.own import KINDS

AXES = "ijk"
BLOCKS = (3, 16)  # divide none of the sizes but 33
MOST = [max(sizes[axis] for sizes in expressions.SIZES) for axis in AXES]
# What the grid gives a field of a kind. "room" holds all coordinates of the level; others have their defaults.
GIVEN = {"width": ("?", "room")}
ANY = "any"  # the level that the grid puts each kind into


def own(classes) -> list[str]:
    """The names of those that lacis registers itself: tests elsewhere add theirs."""
    return sorted(name for name, cls in classes.items() if cls.__module__.startswith("lacis."))


def _arguments(*classes) -> list[tuple[str, ...]]:
    """All combinations of what the grid gives the fields of an extent and a coordinate."""
    fields = [field.name for cls in dict.fromkeys(classes) for field in dataclasses.fields(cls)]
    return list(itertools.product(*(GIVEN[name] for name in fields if name in GIVEN)))


def pairs() -> list[str]:
    """Every extent with every coordinate, with their arguments, and the kinds that `user_kinds` defines."""
    found = []
    for extent, coordinate in itertools.product(own(EXTENTS), own(COORDINATES)):
        for arguments in _arguments(EXTENTS[extent], COORDINATES[coordinate]):
            found.append(f"{extent}*{coordinate}" + (f"<{', '.join(arguments)}>" if arguments else ""))
    return found + sorted(name for name, kind in KINDS.items() if kind.__module__ == user_kinds.__name__)


def _places(levels) -> list[list]:
    """The levels with each of them in turn under test."""
    return [
        [(digits, ANY if n == at else kind) for n, (digits, kind) in enumerate(levels)] for at in range(len(levels))
    ]


def _around(outer, inner=()) -> list:
    """Levels of one digit each: a dense one, then compressed ones, then those inside of blocks."""
    kinds = ["dense"] + ["compressed"] * (len(outer) - 1) + ["dense"] * len(inner)
    return [((digit,), kind) for digit, kind in zip((*outer, *inner), kinds)]


def _tuples(outer, inner=()) -> list[list]:
    """Levels over neighbouring digits: inside of blocks over all, else over all, the first two and the last two."""
    if inner:
        return [[*_around(outer), (tuple(inner), ANY)]]
    ends = [[(outer[:-1], ANY), (outer[-1:], "compressed")], [(outer[:1], "dense"), (outer[1:], ANY)]]
    return [[(outer, ANY)], *(ends if len(outer) > 2 else [])] if len(outer) > 1 else []


def _chains(outer) -> list[list]:
    """A level whose coordinates repeat, and what hangs on it."""
    if len(outer) < 2:
        return []
    first, second, *rest = [(digit,) for digit in outer]
    return [[(first, "compressed<unique=false>"), (second, ANY), *((digit, "singleton") for digit in rest)]]


def layouts(rank: int) -> list[list]:
    """Levels as digits and kinds, one of which is `ANY`: plain, over several axes, in blocks that do not divide.

    Axes in two orders; the larger blocks in the first one, and of three axes the last one and all at once.
    """
    found = []
    for turn, order in enumerate(dict.fromkeys([tuple(range(rank)), tuple(reversed(range(rank)))])):
        plain = tuple(Digit(axis) for axis in order)
        found += _places(_around(plain)) + _tuples(plain) + _chains(plain)
        for size in BLOCKS[: len(BLOCKS) - turn] if rank < 3 else BLOCKS[turn : turn + 1]:
            outer, inner = zip(*(digit.block(size) for digit in plain))
            found += _places(_around(outer, inner))[:: 1 if rank < 3 else -rank] + _tuples(outer, inner)
    return found


def text(levels, pair: str, rank: int) -> str:
    """The format with this kind for the level under test."""
    words = []
    for digits, kind in levels:
        room = math.prod(digit.mod or -(-MOST[digit.axis] // digit.div) for digit in digits)
        name = ", ".join(digit.text(AXES) for digit in digits)
        name = f"({name})" if len(digits) > 1 else name
        words.append(f"{name} : {pair.replace('room', str(room)) if kind == ANY else kind}")
    return f"({', '.join(AXES[:rank])}) -> ({', '.join(words)})"


def candidates(rank: int) -> list[str]:
    """The texts of all formats of `rank` axes, also those that the grammar refuses."""
    return [text(levels, pair, rank) for levels, pair in itertools.product(layouts(rank), pairs())]


def formats(rank: int) -> dict[Format, str]:
    """What the grammar takes of them, each once, and its text."""
    found = {}
    for candidate in candidates(rank):
        try:
            found.setdefault(Format.parse(candidate), candidate)
        except FormatError:
            continue
    return found


# The packed operand comes first.
EXPRESSIONS = {
    1: ("i->", "i,i->", "i,i->i", "i,bi->b", "i,k->ik", "i,ik->k"),
    2: expressions.MATRIX,
    3: expressions.CUBE,
}


def sizes(rank: int):
    """Sizes of the letters; the first ones are the largest."""
    return expressions.SIZES if rank < 3 else expressions.SIZES[:4]


def cases(rank: int) -> list[tuple[str, str, torch.dtype]]:
    """Text, expression and dtype, which come in turns."""
    pairs = itertools.product(enumerate(formats(rank).values()), enumerate(EXPRESSIONS[rank]))
    return [(text, each, conformance.DTYPES[(n + at) % 4]) for (n, text), (at, each) in pairs if is_packed(text)]


def is_packed(text: str) -> bool:
    return refused.expected(text, refused.PACK) is None


def fault(text: str, operation: str, run) -> str | None:
    """What is wrong: another sentence than the table has, a refusal that it lacks, or numbers where it has one."""
    refusal = refused.expected(text, operation)
    try:
        run()
    except lacis.Error as error:
        if refusal is None or not re.search(refusal.sentence, str(error)):
            return f"{text}, {operation}: refused: {error}"
    except AssertionError as error:
        return f"{text}, {operation}: {error}"
    else:
        return refusal and f"{text}, {operation}: not refused any more; its entry has the sentence {refusal.sentence!r}"


def product(text: str, expression: str, dtype, target: str) -> str | None:
    """An einsum on every size against float64 dense, or its refusal."""
    format = Format.parse(text)
    run = lambda: expressions.run(expression, format, dtype, sizes=sizes(format.rank), target=target)
    return fault(text, f"{target} {expression}", run)


def gradients(text: str, target: str) -> str | None:
    """A linear layer and its gradients with respect to the values and to the input, or its refusal."""
    return fault(text, f"{target} ij,bj->bi", lambda: _check_gradients(Format.parse(text), target))


def _check_gradients(format: Format, target: str) -> None:
    generator = torch.Generator().manual_seed(0)
    for rows, columns, density in ((17, 23, 0.3), (5, 9, 1.0), (3, 7, 0.0)):
        w = conformance.sparse((rows, columns), density, torch.float32, generator).to(conformance.DEVICE)
        x = torch.randn(7, columns, generator=generator).to(conformance.DEVICE).requires_grad_()
        packed = lacis.pack(w, format)
        values = packed.values.clone().requires_grad_()
        y = lacis.einsum("ij,bj->bi", packed.with_values(values), x, target=target)
        arrived = torch.randn(y.shape, generator=generator).to(conformance.DEVICE)
        dvalues, dx = torch.autograd.grad(y, (values, x), arrived)
        torch.testing.assert_close(y.double(), x.double() @ w.T.double(), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(dx.double(), arrived.double() @ w.double(), rtol=1e-4, atol=1e-4)
        expected = (arrived.T.double() @ x.double()) * packed.pattern.to_mask()
        found = packed.with_values(dvalues).validate().to_dense()  # padding is 0
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)

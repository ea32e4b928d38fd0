# SPDX-License-Identifier: Apache-2.0
"""Formats and sums drawn from the whole grammar: every kind and binding, arguments, rules, nests, batches."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import unittest

import grid
import hypothesis
import strategies
import tally
from hypothesis import strategies as st
from lacis.errors import FormatError
from lacis.formats import Format, compose
from lacis.formats.digit import Digit
from lacis.formats.level import COORDINATES, EXTENTS

MOST = (40, 40, 80)  # coordinates of an axis and of a diagonal, for tensors of up to 33 x 33
WIDEST = 4000  # the product of the widths of a format that is drawn: all of that is stored
# What an argument is drawn from, beside its default; 8 bits are too few for most tensors.
ARGUMENTS = {"unique": ("false",), "ordered": ("false",), "pos": ("i16", "i64"), "crd": ("i16", "i64")}
# Texts, and the axes that keep levels of their own: the others follow.
BINDINGS = (
    ("d = j - i", ((0,), (1,))),
    ("d = i + j", ((0,), (1,))),
    ("d = rank(i by nnz)", ((1,),)),
    ("d = rank(j by nnz within 5)", ((0,),)),
    ("d = slot(j in i)", ((0, 1),)),
    ("d = slot(i in j floordiv 4)", ((0, 1),)),
    ("d = @my_morton(i, j)", ((),)),
)


def classes_of(pair: str) -> list[type]:
    """The extent and the coordinate of a kind's text."""
    names = pair.partition("<")[0].split("*")
    return [table[name] for table, name in zip((EXTENTS, COORDINATES), names) if name in table]


@functools.cache
def kinds_over(bound: int) -> list[str]:
    """The kinds that a level of so many coordinates can have, or of any number for 0; no batch, and no `@my_window`."""
    levels = f"i floordiv {bound} : dense, i mod {bound}" if bound else "i"
    found = []
    for pair in grid.pairs():
        with contextlib.suppress(FormatError):
            format = Format.parse(f"(i) -> ({levels} : {pair.replace('room', str(bound or 1))})")
            if format.levels[-1].has_code and not format.batch and pair != "@my_window":
                found.append(pair)
    return found


@st.composite
def kinds(draw, digits) -> str:
    """A kind for a level of these digits, now and then with arguments."""
    bound = math.prod(digit.mod for digit in digits)
    pair = draw(st.sampled_from(kinds_over(bound)))
    stores = [cls for cls in classes_of(pair) if cls.name != "implicit"]  # whose 'crd' companions alone have
    names = {field.name for cls in stores for field in dataclasses.fields(cls)} & ARGUMENTS.keys()
    given = [f"{name}={draw(st.sampled_from(ARGUMENTS[name]))}" for name in sorted(names) if _rarely(draw)]
    room = math.prod(digit.mod or -(-MOST[digit.axis] // digit.div) for digit in digits)
    pair = pair.replace("room", str(room))
    if not given:
        return pair
    return f"{pair[:-1]}, {', '.join(given)}>" if pair.endswith(">") else f"{pair}<{', '.join(given)}>"


def _rarely(draw) -> bool:
    return draw(st.integers(0, 5)) == 5


@st.composite
def digits_of(draw, axes) -> list[Digit]:
    """The digits of the axes, each of which is cut at most once, in an order that keeps outer digits first."""
    cut = [Digit(axis).block(draw(st.sampled_from(strategies.BLOCKS[1:]))) for axis in axes]
    rows = [iter(each) if draw(st.booleans()) else iter([Digit(axis)]) for axis, each in zip(axes, cut)]
    rows = [list(row) for row in rows]
    turns = draw(st.permutations([n for n, row in enumerate(rows) for _ in row]))
    rows = [iter(row) for row in rows]
    return [next(rows[turn]) for turn in turns]


@st.composite
def levels(draw, axes, names) -> list[str]:
    """Texts of levels over the axes: single digits, tuples of two, and chains of singletons."""
    rest, found = draw(digits_of(axes)), []
    while rest:
        form = draw(st.sampled_from(("one", "one", "one", "tuple", "chain"))) if len(rest) > 1 else "one"
        count = 1 if form == "one" else 2
        mine, rest = rest[:count], rest[count:]
        words = [digit.text(names) for digit in mine]
        if form == "chain":
            more = draw(st.sampled_from(("", "<unique=false>", "<pad=true>")))
            found += [f"{words[0]} : compressed<unique=false>", f"{words[1]} : singleton{more}"]
        else:
            word = words[0] if form == "one" else f"({', '.join(words)})"
            found.append(f"{word} : {draw(kinds(mine))}")
    return found


@st.composite
def plain(draw) -> Format:
    """A format without bindings."""
    return _parsed(f"(i, j) -> ({', '.join(draw(levels((0, 1), 'ij')))})")


@st.composite
def bound(draw) -> Format:
    """A format with a binding."""
    text, own = draw(st.sampled_from(BINDINGS))
    axes = (*draw(st.sampled_from(own)), 2)
    return _parsed(f"(i, j) let {text} -> ({', '.join(draw(levels(axes, 'ijd')))})")


@st.composite
def nests(draw) -> Format:
    """A format for the grid of blocks, and one inside of them."""
    sizes = [draw(st.sampled_from(strategies.BLOCKS[1:])) for _ in range(2)]
    with _refusals():
        return _small(compose(2, [sizes], [(draw(plain()), [0, 1]), (draw(plain()), [2, 3])]))


@st.composite
def batches(draw) -> Format:
    """Values in copies that share a pattern of the other axis."""
    return _parsed(f"(i, j) -> (i : batch, {', '.join(draw(levels((1,), 'ij')))})")


@st.composite
def rules(draw) -> str:
    """One or two comparisons."""
    found = []
    for _ in range(draw(st.integers(1, 2))):
        one, other = draw(st.permutations("ij"))
        measure = draw(
            st.sampled_from(
                (
                    f"nnz({one})",
                    f"nnz({one}, {other} floordiv 4)",
                    f"{one} floordiv 8",
                    f"{one} mod 3",
                )
            )
        )
        found.append(f"{measure} {draw(st.sampled_from(('lt', 'ge', 'eq')))} {draw(st.integers(0, 4))}")
    return " and ".join(found)


@st.composite
def sums(draw):
    """Two or three parts."""
    parts = [f"p{n} = {draw(st.one_of(plain(), bound()))} when {draw(rules())}" for n in range(draw(st.integers(1, 2)))]
    return _parsed(f"#lacis.sum<{', '.join(parts)}, rest = {draw(plain())}>")


def _parsed(text: str):
    with _refusals():
        return _small(Format.parse(text))


def _small(format):
    """The same, where its widths are not large together."""
    for part in getattr(format, "parts", {"": format}).values():
        if math.prod(level.extent.capacity or 1 for level in part.levels) > WIDEST:
            hypothesis.reject()
    return format


@contextlib.contextmanager
def _refusals():
    """What the grammar refuses is not drawn."""
    try:
        yield
    except FormatError:
        hypothesis.reject()


def everything() -> st.SearchStrategy:
    return st.one_of(plain(), plain(), bound(), bound(), nests(), sums(), batches())


@functools.lru_cache
def pool(count: int) -> list:
    """`count` of them, all different, the same ones for the same seed; another pool than that of `strategies`."""
    found: dict = {}

    @hypothesis.settings(strategies.DRAWN, max_examples=20 * count)
    @hypothesis.seed(tally.SEED)
    @hypothesis.given(everything())
    def draw(format):
        found.setdefault(str(format), format)
        if len(found) == count:
            raise unittest.SkipTest  # ends the drawing

    with contextlib.suppress(unittest.SkipTest):
        draw()
    assert len(found) == count, f"{len(found)} of {count} formats"
    return list(found.values())

# SPDX-License-Identifier: Apache-2.0
"""A tensor as a sum of parts, each with its own format, and the rules that split it."""

from __future__ import annotations

import dataclasses
from typing import Mapping

from ..errors import FormatError
from .batch import verify_parts
from .digit import Digit
from .format import Format
from .predefined import as_format
from .rule import Rule, as_rule


@dataclasses.dataclass(frozen=True)
class Fits:
    """`fits`: the entry is among the first of its fibres, as many as the part has room for."""

    kind = "fits"

    def text(self, names) -> str:
        return "fits"

    def permuted(self, place) -> "Fits":
        return self


@dataclasses.dataclass(frozen=True)
class Compare:
    """`i floordiv 16 lt 4`, `nnz(i) ge 32` or `slot(j in i) lt 8`; signs are read too: `nnz(i) >= 32`.

    `function` is "", "nnz" or "slot"; `digits` are its arguments.
    """

    function: str
    digits: tuple[Digit, ...]
    sign: str
    value: int

    @property
    def kind(self) -> str:
        return self.function or "coordinate"

    def permuted(self, place) -> "Compare":
        return dataclasses.replace(self, digits=tuple(Digit(place[d.axis], d.div, d.mod) for d in self.digits))

    def text(self, names) -> str:
        words = [d.text(names) for d in self.digits]
        if self.function == "slot":
            left = f"slot({words[0]} in {words[1]})"
        else:
            left = f"{self.function}({', '.join(words)})" if self.function else words[0]
        return f"{left} {_WORDS[self.sign]} {self.value}"


_WORDS = {"<": "lt", ">=": "ge", "==": "eq"}  # the dialect's text has no unpaired sign


def parse_predicate(scan, axes) -> tuple:
    """`cmp and cmp ...`."""
    tests = [_parse_test(scan, axes)]
    while scan.accept_word("and"):
        tests.append(_parse_test(scan, axes))
    return tuple(tests)


def _parse_test(scan, axes):
    from .text import parse_digit

    if scan.accept_word("fits"):
        return Fits()
    function, digits = "", []
    if scan.accept_call("slot"):
        function, digits = "slot", [parse_digit(scan, axes)]
        scan.expect_word("in")
        digits.append(parse_digit(scan, axes))
        scan.expect(")")
    elif scan.accept_call("nnz"):
        function, digits = "nnz", [parse_digit(scan, axes)]
        while scan.accept(","):
            digits.append(parse_digit(scan, axes))
        scan.expect(")")
    else:
        digits = [parse_digit(scan, axes)]
    for sign, word in _WORDS.items():
        if scan.accept_word(word) or scan.accept(sign):
            return Compare(function, tuple(digits), sign, scan.integer("a number"))
    scan.fail("expected 'lt', 'ge' or 'eq'")


class Sum:
    """`A = A1 + A2 + ...`: parts by name, in order; every part but the last has a rule.

    `parts` maps names to formats, `predicates` names to tuples of `Fits` and `Compare` (all must hold).
    An entry goes to the first part whose rule it meets, else to the last.

    >>> from lacis.formats import Coo, Ell
    >>> print(decompose(ell=Ell(32), rest=Coo).text[:78])
    #lacis.sum<ell = #lacis.format<(i, j) -> (i : dense, j : packed<32>)> when fit
    """

    def __init__(self, parts: Mapping[str, Format], predicates: Mapping[str, tuple] | None = None):
        self.parts = {name: as_format(part) for name, part in parts.items()}
        self.predicates = {name: tuple(tests) for name, tests in (predicates or {}).items()}
        self._verify()

    def _verify(self) -> None:
        names = list(self.parts)
        if not names:
            raise FormatError("a sum needs at least one part")
        for name, part in self.parts.items():
            if not isinstance(part, Format):
                raise FormatError(f"part '{name}' is a sum itself; name all parts in one decompose()")
            if part.rank != self.parts[names[0]].rank:
                raise FormatError(f"part '{name}' has {part.rank} axes, part '{names[0]}' has {self.rank}")
        for name in names[:-1]:
            if name not in self.predicates:
                raise FormatError(
                    f"part '{name}' has no rule that says which entries it takes; only the last takes the rest"
                )
        if names[-1] in self.predicates:
            raise FormatError(f"the last part '{names[-1]}' takes what is left, it cannot have a rule")
        for name, tests in self.predicates.items():
            if name in self.parts and Fits() in tests and self.parts[name].capacity is None:
                raise FormatError(f"part '{name}' has room for every entry, so 'fits' says nothing; give it a width")
        verify_parts(self.parts, self.predicates)

    @property
    def rank(self) -> int:
        return next(iter(self.parts.values())).rank

    @property
    def buffers(self) -> tuple[str, ...]:
        return tuple(f"{name}.{buffer}" for name, part in self.parts.items() for buffer in part.buffers)

    @property
    def text(self) -> str:
        words = []
        for name, part in self.parts.items():
            tests = self.predicates.get(name)
            rule = " when " + " and ".join(t.text(part.axes) for t in tests) if tests else ""
            words.append(f"{name} = {part.text}{rule}")
        return f"#lacis.sum<{', '.join(words)}>"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Format.parse({self.text!r})"

    def _key(self):
        return tuple(self.parts.items()), tuple(sorted(self.predicates.items()))

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, Sum) else NotImplemented

    def __hash__(self):
        return hash((tuple(self.parts.items()), tuple(self.predicates)))

    def for_rank(self, rank: int) -> "Sum":
        return Sum({name: part.for_rank(rank) for name, part in self.parts.items()}, self.predicates)

    def for_shape(self, shape) -> "Sum":
        """This sum for a tensor of `shape`; refuses one with another number of axes."""
        return self.for_rank(len(shape))

    def require_code(self, what: str) -> None:
        for part in self.parts.values():
            part.require_code(what)
        for tests in self.predicates.values():
            for test in tests:
                if test.kind == "slot":
                    raise FormatError(f"{what}: the rule '{test.kind}' has no code yet, in '{self}'")

    def keeps_whole(self, axes) -> bool:
        """Do the entries that share their coordinates along `axes` always go to one part together?

        It follows from the rules alone, which then look at nothing but `axes` and counts under them: of rows that no
        two parts share, products need not be combined.

        >>> from lacis.formats import Coo, Csr, Ell, digit, nnz
        >>> decompose(short=(Csr, nnz("i") < 4), rest=Coo).keeps_whole([0]), decompose(e=Ell(4), r=Coo).keeps_whole([0])
        (True, False)
        """
        tests = [test for tests in self.predicates.values() for test in tests]
        counted = all(isinstance(test, Compare) and test.function != "slot" for test in tests)
        return counted and all(digit.axis in axes for test in tests for digit in test.digits)

    def row_groups(self, axis: int) -> list[list[str]]:
        """The parts in groups, neighbours each: those of one group never share a coordinate along `axis`.

        It follows from the rules alone. Beside digits of other axes, the same in the whole group, they look at nothing
        but `axis` and counts under it. Where a rule looks at more there are no groups.

        >>> from lacis.formats import Csr, Ell, digit, nnz
        >>> decompose(a=(Csr, (digit("j") < 4) & (nnz("i") < 3)), b=(Csr, digit("j") < 4), rest=Csr).row_groups(0)
        [['a', 'b'], ['rest']]
        >>> decompose(ell=Ell(4), rest=Csr).row_groups(0)
        []
        """
        groups, before = [], None
        for name in self.parts:
            tests = self.predicates.get(name, ())
            others = tuple(test for test in tests if not _looks_at_rows(test, axis))
            if not all(isinstance(test, Compare) and test.function == "" for test in others):
                return []
            if others != before:
                groups.append([])
            groups[-1].append(name)
            before = others
        return groups

    @property
    def batch(self):
        """The first levels of each part, where values alone have their coordinates."""
        return next(iter(self.parts.values())).batch

    def under(self, letters) -> "Sum":
        """This sum below one dense level for each letter."""
        return self._below(letters, {name: part.under(letters) for name, part in self.parts.items()})

    def batched(self, letters) -> "Sum":
        """This sum below one level of a batch for each letter."""
        return self._below(letters, {name: part.batched(letters) for name, part in self.parts.items()})

    def _below(self, letters, parts) -> "Sum":
        place = [axis + len(letters) for axis in range(self.rank)]
        return Sum(parts, {name: tuple(t.permuted(place) for t in tests) for name, tests in self.predicates.items()})

    def permuted(self, permutation) -> "Sum":
        parts = {name: part.permuted(permutation) for name, part in self.parts.items()}
        place = list(permutation)
        return Sum(parts, {name: tuple(t.permuted(place) for t in tests) for name, tests in self.predicates.items()})


def _looks_at_rows(test, axis: int) -> bool:
    """Does the test look at nothing but `axis` and counts under it?"""
    counted = isinstance(test, Compare) and test.function != "slot"
    return counted and all(digit.axis == axis for digit in test.digits)


def decompose(**parts) -> Sum:
    """The sum of parts in order. Each is a format, or a pair of a format and the rule that says what it takes.

    A part without a rule takes the entries that fit, the last what is left. A rule is made of `lacis.nnz` and
    `lacis.digit`, or the dialect's text.

    >>> from lacis.formats import Csr, Dcsr, nnz
    >>> decompose(short=(Csr, nnz("i") < 256), long=Dcsr).predicates["short"][0].text("ij")
    'nnz(i) lt 256'

    Raises `FormatError` when a part before the last has room for everything, and no rule.
    """
    split = {name: split_part(part) for name, part in parts.items()}
    formats, predicates = {name: part for name, (part, _) in split.items()}, {}
    for name, (part, rule) in split.items():
        if rule is not None:
            predicates[name] = rule.tests(part.axes)
        elif name != list(split)[-1]:
            if isinstance(part, Format) and part.capacity is None:
                raise FormatError(
                    f"part '{name}' takes every entry and is not the last; give it a width, Ell(width=32), "
                    f'or a rule, {name}=(format, lacis.nnz("i") < 32)'
                )
            predicates[name] = (Fits(),)
    return Sum(formats, predicates)


def split_part(part) -> tuple[Format | Sum, Rule | None]:
    """The format of a part and its rule, None where it has none of its own."""
    if not isinstance(part, (tuple, list)):
        return as_format(part), None
    if len(part) != 2:
        raise FormatError(f"a part is a format, or a pair of a format and a rule, not {len(part)} things")
    return as_format(part[0]), as_rule(part[1])

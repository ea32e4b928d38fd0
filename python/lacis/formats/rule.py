# SPDX-License-Identifier: Apache-2.0
"""Rules that split a sum, as values: `lacis.nnz("i") < 256`, which prints as the dialect's text and is read back."""

from __future__ import annotations

import dataclasses

from ..errors import FormatError


@dataclasses.dataclass(frozen=True)
class Rule:
    """Which entries a part of a sum takes: comparisons that must all hold, as the dialect writes them.

    Axes go by the names that the part's format has, `i` and `j` of a predefined one.

    >>> Rule("nnz(i) < 256") & Rule("j floordiv 64 eq 0")
    Rule('nnz(i) < 256 and j floordiv 64 eq 0')
    """

    text: str

    def tests(self, axes) -> tuple:
        """The comparisons, with the axes called `axes`. Raises `FormatError` for text that is no rule."""
        from .scanner import Scanner
        from .sum import parse_predicate

        if not isinstance(self.text, str):
            raise FormatError(f"a rule is lacis.nnz(...) < n, or its text, not {self.text!r}")
        scan = Scanner(self.text)
        tests = parse_predicate(scan, axes)
        scan.expect_end()
        return tests

    def __and__(self, other) -> "Rule":
        return Rule(f"{self.text} and {other.text}") if isinstance(other, Rule) else NotImplemented

    def __bool__(self):
        raise FormatError(
            f"the rule '{self.text}' is true of some entries only; join rules with &, each in parentheses"
        )

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Rule({self.text!r})"


class Measure:
    """What a rule compares with a number, by `<`, `<=`, `>`, `>=` or `==`: made by `lacis.nnz` and `lacis.digit`."""

    __hash__ = None

    def __init__(self, text: str):
        self.text = text

    def __lt__(self, value) -> Rule:
        return self._compared("lt", value)

    def __le__(self, value) -> Rule:
        return self._compared("lt", value, more=1)

    def __ge__(self, value) -> Rule:
        return self._compared("ge", value)

    def __gt__(self, value) -> Rule:
        return self._compared("ge", value, more=1)

    def __eq__(self, value) -> Rule:
        return self._compared("eq", value)

    def __ne__(self, value):
        raise FormatError(f"a rule cannot say that '{self.text}' is not {value!r}; give those their part before")

    def _compared(self, word: str, value, more: int = 0) -> Rule:
        if isinstance(value, bool) or not isinstance(value, int):
            raise FormatError(f"a rule compares '{self.text}' with a whole number, not {value!r}")
        return Rule(f"{self.text} {word} {value + more}")

    def __repr__(self) -> str:
        return self.text


class _Digit(Measure):
    def __floordiv__(self, size: int) -> "_Digit":
        return self._cut("floordiv", size)

    def __mod__(self, size: int) -> "_Digit":
        return self._cut("mod", size)

    def _cut(self, word: str, size) -> "_Digit":
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise FormatError(f"a block size must be a positive integer, not {size!r}")
        return _Digit(f"{self.text} {word} {size}")


def nnz(*digits) -> Measure:
    """The number of entries that have the same `digits` as the one looked at, for a rule: of its row for `"i"`.

    Digits are text (`"i"`, `"j floordiv 64"`) or `lacis.digit`. Counted are the entries that earlier parts, and the
    comparisons before in the same rule, let through.

    >>> nnz("i") < 256, nnz("i", digit("j") // 64) >= 4
    (Rule('nnz(i) lt 256'), Rule('nnz(i, j floordiv 64) ge 4'))
    """
    if not digits:
        raise FormatError('nnz needs the axes under which entries are counted: lacis.nnz("i") of a row')
    return Measure(f"nnz({', '.join(digit(each).text for each in digits)})")


def digit(text) -> _Digit:
    """The coordinate of an entry along an axis, or with `//` and `%` a digit of it, for a rule.

    >>> (digit("j") // 64 == 0) & (digit("i") % 2 < 1)
    Rule('j floordiv 64 eq 0 and i mod 2 lt 1')
    """
    if isinstance(text, _Digit):
        return text
    if not isinstance(text, str):
        raise FormatError(f"an axis goes by its letter, as 'i', not {text!r}")
    return _Digit(text)


def as_rule(rule) -> Rule:
    """A rule from a rule or its text. Raises `FormatError`."""
    if isinstance(rule, (str, Rule)):
        return Rule(rule) if isinstance(rule, str) else rule
    more = f"; compare it with a number, {rule.text} < 4" if isinstance(rule, Measure) else ""
    raise FormatError(f"a rule is lacis.nnz(...) < n, lacis.digit(...) < n, or its text, not {rule!r}{more}")

# SPDX-License-Identifier: Apache-2.0
"""Reads steps from the text that the dialect prints, so that text to record to text changes nothing."""

from __future__ import annotations

import json
import re

from ...errors import ScheduleError, format_location
from ...nearest import nearest
from .sequence import Steps
from .step import STEPS, Step

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(-?\d+)(?:\s*:\s*i64)?")
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def parse(text: str) -> Step | Steps:
    """The record of a step's text, or the records of a list of them.

    >>> parse('#lacis.split<loop = "i", factor = 32>')
    Split(loop='i', factor=32)
    >>> print(parse('[#lacis.split<factor = 32, loop = "i">, #lacis.parallel<loop = "i0">]'))
    split("i", 32)
    parallel("i0")

    Raises `ScheduleError` for a text that is no step.
    """
    reader = _Reader(text)
    result = Steps(reader.items("[", "]", reader.step)) if reader.peek("[") else reader.step()
    if reader.rest():
        reader.fail("expected the end")
    return result


def in_words(text: str, given: tuple[Step, ...] = ()) -> str:
    """A sentence of the compiler's in which steps stand as a user writes them; those of `given` with their lines.

    >>> in_words('tensorize: #lacis.split<loop = "b", factor = 4>: tiles have more columns')
    'tensorize: split("b", 4): tiles have more columns'
    """
    written, at = [], 0
    while (start := text.find("#lacis.", at)) >= 0:
        reader = _Reader(text)
        reader.at = start
        step = reader.step()
        line = next((format_location(own.location) for own in given if own == step and own.location), "")
        written += [text[at:start], step.describe(), f" at {line}" if line else ""]
        at = reader.at
    return "".join([*written, text[at:]])


class _Reader:
    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def fail(self, what: str):
        raise ScheduleError(f"steps: {what} at character {self.at} of '{self.text}'")

    def rest(self) -> str:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return self.text[self.at :]

    def peek(self, token: str) -> bool:
        return self.rest().startswith(token)

    def accept(self, token: str) -> bool:
        found = self.peek(token)
        self.at += len(token) if found else 0
        return found

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"expected '{token}'")

    def match(self, pattern, what: str):
        found = pattern.match(self.rest())
        if not found:
            self.fail(f"expected {what}")
        self.at += found.end()
        return found

    def items(self, opening: str, closing: str, item) -> list:
        self.expect(opening)
        found = []
        while not self.accept(closing):
            if found:
                self.expect(",")
            found.append(item())
        return found

    def step(self) -> Step:
        self.expect("#lacis.")
        name = self.match(_NAME, "a verb").group()
        if name not in STEPS:
            self.fail(f"no verb '{name}'{nearest(name, STEPS)}")
        fields = dict(self.items("<", ">", self.field)) if self.peek("<") else {}
        try:
            return STEPS[name].of_fields(fields)
        except TypeError as error:
            self.fail(f"{name}: {error}")

    def field(self) -> tuple[str, object]:
        name = self.match(_NAME, "the name of a field").group()
        self.expect("=")
        return name, self.value()

    def value(self):
        if self.peek('"'):
            return json.loads(self.match(_STRING, "a string").group())
        if self.peek("["):
            return tuple(self.items("[", "]", self.value))
        if self.peek("{"):
            return tuple(self.items("{", "}", self.field))
        if self.peek("#"):
            return self.attribute()
        for word, value in (("true", True), ("false", False)):
            if self.accept(word):
                return value
        return int(self.match(_NUMBER, "a value").group(1))

    def attribute(self) -> str:
        """Any other attribute, as its text: up to the comma or bracket that ends it."""
        start, open_brackets = self.at, []
        for self.at in range(start, len(self.text)):
            char, arrow = self.text[self.at], self.text[self.at - 1 : self.at + 1] == "->"
            if char in _CLOSING:
                open_brackets.append(_CLOSING[char])
            elif open_brackets and char == open_brackets[-1] and not arrow:
                open_brackets.pop()
            elif not open_brackets and char in ",>]}":
                break
        return self.text[start : self.at].strip()

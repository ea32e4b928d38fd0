# SPDX-License-Identifier: Apache-2.0
"""Reads the text of formats word by word, and says where it stopped."""

from __future__ import annotations

import re
from typing import NoReturn

from ..errors import FormatError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Scanner:
    """A position in a text; `accept` moves over what is there, `expect` insists on it."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def fail(self, message: str) -> NoReturn:
        raise FormatError(f"{message}, at character {self.at} of '{self.text}'")

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self, token: str) -> bool:
        self._skip()
        return self.text.startswith(token, self.at)

    def accept(self, token: str) -> bool:
        found = self.peek(token)
        self.at += len(token) if found else 0
        return found

    def accept_word(self, word: str) -> bool:
        self._skip()
        match = _IDENTIFIER.match(self.text, self.at)
        found = match is not None and match.group() == word
        self.at += len(word) if found else 0
        return found

    def accept_call(self, word: str) -> bool:
        """`word (`."""
        start = self.at
        if self.accept_word(word) and self.accept("("):
            return True
        self.at = start
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"expected '{token}'")

    def expect_word(self, word: str) -> None:
        if not self.accept_word(word):
            self.fail(f"expected '{word}'")

    def expect_end(self) -> None:
        self._skip()
        if self.at != len(self.text):
            self.fail("expected the end")

    def identifier(self, what: str, also: str = "") -> str:
        self._skip()
        sign = self.text[self.at] if also and self.text[self.at : self.at + 1] == also else ""
        match = _IDENTIFIER.match(self.text, self.at + len(sign))
        if match is None:
            self.fail(f"expected {what}")
        self.at = match.end()
        return sign + match.group()

    def integer(self, what: str) -> int:
        self._skip()
        match = re.compile(r"-?\d+").match(self.text, self.at)
        if match is None:
            self.fail(f"expected {what}")
        self.at = match.end()
        return int(match.group())

    def positive(self, what: str) -> int:
        value = self.integer(what)
        if value < 1:
            self.fail(f"{what} must be positive, not {value}")
        return value

    def list(self, item) -> list:
        """`( item, ... )`."""
        self.expect("(")
        items = [item()]
        while self.accept(","):
            items.append(item())
        self.expect(")")
        return items

    def argument(self) -> tuple[str | None, object]:
        """`4`, `?`, `unique=false` or `pos=i64`."""
        self._skip()
        if self.accept("?"):
            return None, None
        if self.text[self.at : self.at + 1].isdigit():
            return None, self.positive("a width")
        key = self.identifier("an argument")
        self.expect("=")
        value = self.identifier("a value")
        return key, {"true": True, "false": False}.get(value, value)

    def attribute(self) -> str:
        """Any attribute, up to the comma or bracket that ends it."""
        self._skip()
        start, stack = self.at, []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in _CLOSING and self.text[self.at - 1 : self.at + 1] != "->":
                stack.append(_CLOSING[char])
            elif stack and char == stack[-1]:
                stack.pop()
            elif not stack and (char in ",>)" and self.text[self.at - 1 : self.at + 1] != "->"):
                break
            self.at += 1
        text = self.text[start : self.at].strip()
        if not text:
            self.fail("expected an attribute")
        return text

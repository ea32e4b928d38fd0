# SPDX-License-Identifier: Apache-2.0
"""Rules in which queries may see what comes after them, or may not."""

from __future__ import annotations

from ...errors import DataError
from .rule import PatternRule


class Directed(PatternRule):
    """Base of rules with an `attention`: "bidirectional", or "unidirectional", where no query sees a later key.

    >>> rule = Directed()
    >>> rule.turn("unidirectional")
    >>> rule.is_causal, rule.mask(0, 0, 3, 4)
    (True, False)
    """

    by_position = True
    attention = "bidirectional"

    def turn(self, attention: str, horizontal: bool = False) -> None:
        """Take a direction. Raises `DataError` for what attention has not."""
        if attention not in ("bidirectional", "unidirectional"):
            raise DataError(f"attention is 'bidirectional' or 'unidirectional', not {attention!r}")
        if horizontal and attention == "unidirectional":
            raise DataError("horizontal_global_attention lets queries see later keys, so it needs 'bidirectional'")
        self.attention = attention

    @property
    def is_causal(self) -> bool:
        return self.attention == "unidirectional"

    @property
    def mask(self):
        """The entries of kept blocks that count: inside a block too none that is later."""
        return _earlier if self.is_causal else None


def _earlier(b, h, i, j):
    return j <= i

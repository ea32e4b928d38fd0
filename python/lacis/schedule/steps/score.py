# SPDX-License-Identifier: Apache-2.0
"""The verb `score`."""

from __future__ import annotations

import dataclasses

from ...errors import ScheduleError
from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Score(Step):
    """Change the scores of a module that attends, entry by entry, by a function as flex_attention takes it.

    s[b, h, i, j]   -->   function(s[b, h, i, j], b, h, i, j)
    """

    mnemonic = "score"
    function: object
    ready = True
    of_loops = False
    of_modules = True

    def __post_init__(self):
        if not callable(self.function):
            raise ScheduleError(
                f"score: a function of (score, b, h, i, j) is needed, not {self.function!r}", location=self.location
            )

    def check(self, earlier):
        for step in earlier:
            if isinstance(step, Score):
                self.contradict(step, "the module has a score function already")

    def describe(self):
        return f"score({getattr(self.function, '__qualname__', type(self.function).__name__)})"

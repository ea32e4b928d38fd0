# SPDX-License-Identifier: Apache-2.0
"""Steps in order, as `kernel.steps` answers them."""

from __future__ import annotations


class Steps(tuple):
    """A tuple of records that prints one step a line, in the words of a schedule.

    >>> from lacis import steps
    >>> print(Steps([steps.Split("i", 32), steps.Parallel("i0")]))
    split("i", 32)
    parallel("i0")
    """

    def __str__(self) -> str:
        return "\n".join(step.describe() for step in self)

    def text(self) -> str:
        """The list as an attribute of the dialect."""
        return f"[{', '.join(step.text() for step in self)}]"

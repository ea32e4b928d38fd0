# SPDX-License-Identifier: Apache-2.0
"""The verb `set_format`."""

from __future__ import annotations

import dataclasses

from ...errors import ScheduleError
from ...formats import as_format, words_of
from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class SetFormat(Step):
    """Store the tensor (or the axes `axis` of a blocked one) in a format.

    w[i, j]   -->   pos, crd, values
    """

    mnemonic = "set_format"
    format: object
    axis: tuple | None = None
    ready = True
    of_loops = False

    def __post_init__(self):
        object.__setattr__(self, "format", as_format(self.format))
        if self.axis is not None:
            if not isinstance(self.axis, (list, tuple)) or not all(isinstance(axis, int) for axis in self.axis):
                raise ScheduleError(
                    f"set_format: 'axis' is a list of axes, as axis=[0, 1], not {self.axis!r}", location=self.location
                )
            object.__setattr__(self, "axis", tuple(self.axis))

    def check(self, earlier):
        for step in earlier:
            if step.mnemonic == "decompose":
                self.contradict(step, "the tensor is a sum already; give the format to one of its parts")
            if isinstance(step, SetFormat):
                if self.axis is None or step.axis is None:
                    self.contradict(step, "the tensor has a format already; name axes to nest one in the other")
                both = sorted(set(self.axis) & set(step.axis))
                if both:
                    self.contradict(step, f"axis {both[0]} has a format already")

    def describe(self):
        name = words_of(self.format)
        return f"set_format({name})" if self.axis is None else f"set_format({name}, axis={list(self.axis)})"

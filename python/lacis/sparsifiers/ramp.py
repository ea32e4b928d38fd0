# SPDX-License-Identifier: Apache-2.0
"""A number that changes while a model trains."""

from __future__ import annotations

import dataclasses

from ..errors import DataError


@dataclasses.dataclass(frozen=True)
class Ramp:
    """A share that goes from `start` to `end` over the steps `when`, and may stand wherever a sparsity does.

    At step n it is `end + (start - end) * (1 - t) ** power`, where t goes from 0 at the first of `when` to 1 at the
    last; before and after, it is what it is there. `power` 3 is that of gradual magnitude pruning (Zhu and Gupta,
    2017), 1 is linear. `when` is a `range` of steps: those after which the pattern is chosen again
    (`Updates.step` counts its calls from 1; `build` is step 0).

    >>> ramp = Ramp(0.0, 0.9, range(0, 101, 50))
    >>> [round(ramp(step), 4) for step in (0, 50, 100, 1000)]
    [0.0, 0.7875, 0.9, 0.9]

    Raises `DataError` where `start` or `end` is no number, `power` is not positive, or `when` is not an ascending
    `range` with a step in it.
    """

    start: float
    end: float
    when: range
    power: float = 3

    def __post_init__(self):
        for name in ("start", "end", "power"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise DataError(f"Ramp: {name} is a number, not {value!r}")
        if not self.power > 0:
            raise DataError(f"Ramp: power is positive, not {self.power!r}")
        check_when("Ramp", self.when)

    def __call__(self, step: int) -> float:
        """The value at a step."""
        first, last = self.when[0], self.when[-1]
        t = 1.0 if step >= last else max(step - first, 0) / (last - first)
        return self.end + (self.start - self.end) * (1 - t) ** self.power


def check_when(what: str, when) -> range:
    """Raise `DataError` unless it is a `range` of steps, ascending and not empty."""
    if not isinstance(when, range) or when.step < 1 or not len(when) or when[0] < 0:
        raise DataError(f"{what}: when is an ascending range of step counts, as range(1000, 10_001, 100), not {when!r}")
    return when

# SPDX-License-Identifier: Apache-2.0
"""The verb `sparsify`."""

from __future__ import annotations

import dataclasses

from ...errors import ScheduleError
from ...sparsifiers import Sparsifier, as_sparsifier
from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Sparsify(Step):
    """Choose which entries exist.

    w[i, j]   -->   w[i, j] where mask[i, j]

    With `master` the dense Parameter stays and trains, and the entries follow from it in each call; its gradient is
    dense (`"ste"`, straight through the mask) or that of the entries (`"masked"`). `decay` adds
    `decay * (1 - mask) * w` to it (SR-STE, Zhou et al., 2021).
    """

    mnemonic = "sparsify"
    sparsifier: object
    master: str | None = None
    decay: float = 0.0
    ready = True
    of_loops = False

    def __post_init__(self):
        object.__setattr__(self, "sparsifier", as_sparsifier(self.sparsifier))
        if self.master not in (None, "ste", "masked"):
            raise ScheduleError(f"sparsify: master is 'ste' or 'masked', not {self.master!r}", location=self.location)
        number = isinstance(self.decay, (int, float)) and not isinstance(self.decay, bool)
        if not number or self.decay < 0 or (self.decay and self.master is None):
            raise ScheduleError(
                f"sparsify: decay is a positive number beside master='ste' or 'masked', which keep what it pulls "
                f"towards 0, not {self.decay!r}",
                location=self.location,
            )
        if self.master is not None and self.of_modules:
            raise ScheduleError("sparsify: master= is said of a parameter", location=self.location)

    @property
    def of_modules(self) -> bool:
        """Is it a rule of attention?"""
        return not isinstance(self.sparsifier, Sparsifier)

    def describe(self):
        named = {name: value for name, value in self.arguments().items() if name != "sparsifier"}
        first = dataclasses.replace(self, master=None, decay=0.0) if named else self
        words = ", ".join(f"{name}={value!r}" for name, value in named.items())
        return super(Sparsify, first).describe()[:-1] + (f", {words})" if words else ")")

    def check(self, earlier):
        for step in earlier:
            if isinstance(step, Sparsify):
                self.contradict(step, "the entries are chosen already")

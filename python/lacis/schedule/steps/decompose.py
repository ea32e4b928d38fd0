# SPDX-License-Identifier: Apache-2.0
"""The verb `decompose`."""

from __future__ import annotations

import dataclasses

from ...errors import ScheduleError, user_location
from ...formats import as_format, words_of
from .step import HERE, Step, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Decompose(Step):
    """Store the tensor as a sum of parts; each but the last takes the entries that fit.

    w   -->   w.ell + w.rest
    """

    mnemonic = "decompose"
    parts: tuple
    ready = True
    of_loops = False

    def __init__(self, *, location=HERE, **parts):
        location = user_location() if location is HERE else location
        if len(parts) < 2:
            raise ScheduleError("a sum needs at least two parts", location=location)
        formats = tuple((name, as_format(part)) for name, part in parts.items())
        object.__setattr__(self, "parts", formats)
        object.__setattr__(self, "location", location)

    @classmethod
    def of_fields(cls, fields, location=None):
        return cls(**dict(fields["parts"]), location=location)

    def check(self, earlier):
        for step in earlier:
            if isinstance(step, (Decompose,)) or step.mnemonic == "set_format":
                self.contradict(step, "the tensor has a format already")

    def describe(self):
        return f"decompose({', '.join(f'{name}={words_of(part)}' for name, part in self.parts)})"

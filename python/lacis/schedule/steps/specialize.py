# SPDX-License-Identifier: Apache-2.0
"""The verb `specialize`."""

from __future__ import annotations

import dataclasses

from ...errors import ScheduleError, user_location
from .step import HERE, Step, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Specialize(Step):
    """Compile for these sizes of letters instead of any; other sizes are refused at the launch.

    for b in B:  s   -->   for b in 128:  s
    """

    mnemonic = "specialize"
    sizes: tuple
    ready = True

    def __init__(self, *, location=HERE, **sizes):
        object.__setattr__(self, "sizes", tuple(sorted(sizes.items())))
        object.__setattr__(self, "location", user_location() if location is HERE else location)
        for letter, size in self.sizes:
            if not isinstance(size, int) or isinstance(size, bool):
                raise ScheduleError(
                    f"specialize: the size of '{letter}' is a whole number, not {size!r}", location=self.location
                )

    @classmethod
    def of_fields(cls, fields, location=None):
        return cls(**dict(fields["sizes"]), location=location)

    def describe(self):
        return f"specialize({', '.join(f'{letter}={size}' for letter, size in self.sizes)})"

    def text(self):
        sizes = ", ".join(f"{letter} = {size} : i64" for letter, size in self.sizes)
        return f"#lacis.specialize<sizes = {{{sizes}}}>"

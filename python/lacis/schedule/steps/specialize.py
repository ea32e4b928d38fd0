# SPDX-License-Identifier: Apache-2.0
"""The verb `specialize`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Specialize(Step):
    """Compile for these sizes instead of any.

    for b in B:  s   -->   for b in 128:  s
    """

    mnemonic = "specialize"
    sizes: tuple

    def __init__(self, *, location=None, **sizes):
        object.__setattr__(self, "sizes", tuple(sorted(sizes.items())))
        object.__setattr__(self, "location", location)

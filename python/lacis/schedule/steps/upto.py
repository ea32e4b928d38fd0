# SPDX-License-Identifier: Apache-2.0
"""The verb `upto`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Upto(Step):
    """Give sizes of `loop` up to `most` a nest of their own, whose loops' names begin with `upto8.`.

    for b in n: s   -->   if n <= 8: for upto8.b in n:  s  else: for b in n:  s
    """

    mnemonic = "upto"
    loop: str
    most: int
    ready = True

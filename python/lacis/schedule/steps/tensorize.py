# SPDX-License-Identifier: Apache-2.0
"""The verb `tensorize`."""

from __future__ import annotations

import dataclasses
import json

from ...errors import ScheduleError
from .step import HERE, Variadic, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Tensorize(Variadic):
    """Let `loops` be the rows, columns and depth of one product of tiles, computed with matrix instructions.

    for i1: for b1: for j1:  y[b1, i1] += w[i1, j1] * x[b1, j1]   -->   y tile += w tile * x tile
    """

    mnemonic = "tensorize"
    # Of warpgroups, staged; "tf32": so, of float32 with 10 bits of the mantissa; "mma": of one warp, read from memory.
    kind: str | None = None
    loops: tuple = ()
    ready = True

    def __init__(self, *loops, kind=None, location=HERE, **named):
        super().__init__(kind, *loops, location=location, **named)

    def describe(self) -> str:
        kind = [] if self.kind is None else [f"kind={json.dumps(self.kind)}"]
        return f"{self.mnemonic}({', '.join([*map(json.dumps, self.loops), *kind])})"


def refuse_tiles(steps) -> None:
    """Raise `ScheduleError` for steps that a strict kernel cannot have: tiles, but for those of one warp.

    These are parts of stored blocks; all others have zeros where nothing is stored.

    >>> refuse_tiles([Tensorize("i1", "b1", "j1", kind="mma")])
    """
    for step in steps:
        if step.mnemonic == Tensorize.mnemonic and step.kind != "mma":
            raise ScheduleError(
                "tensorize: strict=True keeps NaN and infinity from outputs without an entry there, "
                "and a product of tiles does not; leave tensorize out, or take strict=False",
                location=step.location,
            )

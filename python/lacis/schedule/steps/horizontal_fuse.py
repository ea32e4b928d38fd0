# SPDX-License-Identifier: Apache-2.0
"""The verb `horizontal_fuse`."""

from __future__ import annotations

import dataclasses

from .step import Variadic, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class HorizontalFuse(Variadic):
    """Make the parts of a sum the iterations of one loop, `ell_rest`, so that units run them side by side.

    Without names all parts are meant. The loop carries the sum: the lanes of a warp and the warps of a block (`bind`)
    bring the parts together in their order, other units under a strategy of `race`.

    for i:  s += ell;  s += rest   -->   for i: for ell_rest in 2:  s += part(ell_rest)
    """

    mnemonic = "horizontal_fuse"
    parts: tuple
    ready = True

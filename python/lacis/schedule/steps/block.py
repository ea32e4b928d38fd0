# SPDX-License-Identifier: Apache-2.0
"""The verb `block`."""

from __future__ import annotations

import dataclasses

from .step import Variadic, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Block(Variadic):
    """Cut each axis into blocks; a second one cuts the innermost blocks again.

    w[i, j]   -->   w[i0, j0, i1, j1]
    """

    mnemonic = "block"
    sizes: tuple
    ready = True
    of_loops = False

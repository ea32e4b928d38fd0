# SPDX-License-Identifier: Apache-2.0
"""The verb `horizontal_fuse`."""

from __future__ import annotations

import dataclasses

from .step import Variadic, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class HorizontalFuse(Variadic):
    """Run the parts of a sum side by side in one launch.

    for ell: s; for rest: t   -->   parallel { for ell: s } { for rest: t }
    """

    mnemonic = "horizontal_fuse"
    parts: tuple

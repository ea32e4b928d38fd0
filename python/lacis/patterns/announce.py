# SPDX-License-Identifier: Apache-2.0
"""Says how large an array will be that has an element for each coordinate, where that is more than one expects."""

from __future__ import annotations

import warnings

from ..errors import format_location, user_location

MOST_SILENT = 2**32
"""Bytes that an array may take without a word: 4 GiB, half a billion rows in 64 bits."""


def announce(count: int, level: str, text: str) -> None:
    """Warn before an array with 64 bits for each of `count` positions is made for a level of the format `text`.

    >>> announce(1000, "compressed", "(i, j) -> (i : dense, j : compressed)")
    """
    if 8 * count > MOST_SILENT:
        where = format_location(user_location())
        warnings.warn(
            f"{where}: '{level}' of '{text}' takes {8 * count} bytes for its {count} positions, filled or not; "
            "where most have no entry, compress the level above",
            stacklevel=2,
        )

# SPDX-License-Identifier: Apache-2.0
"""What attention makes of patterns, kept with them for the next call."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..patterns import Pattern

COLUMNS = "columns"
"""The key of a pattern's entries by columns."""


def kept_of(pattern: Pattern, key, make: Callable[[], Pattern]) -> Pattern:
    """What `make` makes of a pattern, once until the pattern changes."""
    pattern._forget_changed()
    if key not in pattern._kept:
        with torch.inference_mode(False):  # calls that record gradients read it, too
            pattern._kept[key] = make()
    return pattern._kept[key]


def keep_columns(pattern: Pattern, columns: Pattern) -> None:
    """Keep what was made together with a new pattern: its entries by columns."""
    pattern._kept[COLUMNS] = columns

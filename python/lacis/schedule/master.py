# SPDX-License-Identifier: Apache-2.0
"""What a dense Parameter that stays, with packed entries that follow it, asks of a schedule."""

from __future__ import annotations

from ..errors import FormatError, ScheduleError
from .edges import grows
from .site import Site


def check_master(site: Site) -> None:
    """Raise, with the user's line, unless entries can follow the dense Parameter of a site in each call.

    As for activations, how many values are stored must follow from the shape, so that no call allocates or waits.
    """
    sparsifier = site.sparsifier
    what = type(sparsifier).__name__
    reads_inputs = getattr(sparsifier, "reads_inputs", False)
    if reads_inputs or "candidates" in getattr(sparsifier, "reads", ()):
        reads = "inputs" if reads_inputs else "the gradient of empty places"
        raise ScheduleError(
            f"'{site.name}': master= keeps every value, and {what} reads {reads}; take a sparsifier that looks at the "
            "values, as Magnitude or NM, or Movement",
            location=site.location,
        )
    if reason := grows(site.format(), site):
        raise FormatError(
            f"'{site.name}': the size of '{site.format()}' depends on the values: {reason}; with master= the entries "
            "follow the weight in each call, so the format's size must follow from its shape",
            location=site.location,
        )

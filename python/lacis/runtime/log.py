# SPDX-License-Identifier: Apache-2.0
"""The logger `lacis`, at the level and on the stream that `LACIS_LOG` asks for."""

from __future__ import annotations

import logging

from lacis import knobs
from lacis.errors import Error

LOG = logging.getLogger("lacis")
_LEVELS = ("debug", "info", "warning", "error")


def configure() -> None:
    """Obeys `knobs.log`; without it the logger stays as the program set it up."""
    level = knobs.log
    if level is None:
        return
    if level.lower() not in _LEVELS:
        raise Error(f"LACIS_LOG: no level '{level}'; there are {', '.join(_LEVELS)}", location=None)
    LOG.setLevel(level.upper())
    if not LOG.hasHandlers():
        LOG.addHandler(logging.StreamHandler())

# SPDX-License-Identifier: Apache-2.0
"""A line of progress on a terminal, for work that takes longer than a second."""

from __future__ import annotations

import sys
import time


class Progress:
    """Shows nothing before `delay` seconds have passed, and nothing at all where standard error is no terminal."""

    def __init__(self, title: str, delay: float = 1.0):
        self.title = title
        self._start = time.monotonic() + delay
        self._status = None

    def __enter__(self) -> Progress:
        return self

    def show(self, stage: str, done: int, total: int) -> None:
        if not sys.stderr.isatty() or time.monotonic() < self._start:
            return
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status("")
            self._status.start()
        self._status.update(f"{self.title}: {stage} {done} of {total}")

    def __exit__(self, *error) -> None:
        if self._status is not None:
            self._status.stop()

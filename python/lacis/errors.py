# SPDX-License-Identifier: Apache-2.0
"""The errors of Lacis, each of which begins with the user's own file and line."""

from __future__ import annotations

import functools
import os
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BETWEEN = {
    "torch",
    "contextlib",
    "functools",
    "importlib",
    "concurrent",
    "threading",
}  # never the user's own code


def user_location() -> tuple[str, int] | None:
    """The file and line of the innermost caller that is not part of lacis, torch or Python's own machinery.

    Returns None when no such frame exists (an embedded interpreter).

    >>> file, line = user_location()
    >>> line > 0
    True
    """
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        own = name == "<string>" and module == "lacis" or _is_own(name)
        if module not in _BETWEEN and not own:
            return name, frame.f_lineno
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=4096)
def _is_own(file: str) -> bool:
    return os.path.abspath(file).startswith(_PACKAGE)


def format_location(location: tuple[str, int] | None) -> str:
    """`file:line` as messages show it: relative to the working directory where that is shorter.

    >>> format_location(("train.py", 12))
    'train.py:12'
    """
    if location is None:
        return ""
    file, line = location
    if os.path.isabs(file):
        try:
            file = min(file, os.path.relpath(file), key=len)
        except (OSError, ValueError):  # the working directory is gone, or another drive
            pass
    return f"{file}:{line}"


class Error(Exception):
    """Base of every error of Lacis.

    `location` is (file, line) of the user's code, found by itself unless given; `None` leaves it out
    (for messages that carry one already). Nothing has changed when an error is raised.

    >>> str(Error("no such loop", location=("train.py", 12)))
    'train.py:12: no such loop'
    """

    _FIND = object()

    def __init__(self, message: str, *, location=_FIND):
        super().__init__(message)
        self.message = message
        self.location = user_location() if location is Error._FIND else location

    def __str__(self) -> str:
        where = format_location(self.location)
        return f"{where}: {self.message}" if where else self.message

    def __reduce__(self):
        return _rebuild, (type(self), self.message, self.location)


def _rebuild(cls, message, location):
    return cls(message, location=location)


class ScheduleError(Error):
    """A verb or step that cannot apply, or a name that does not exist."""


class FormatError(Error):
    """A format that is malformed, or that has no code for what is asked of it."""


class CompileError(Error):
    """The compiler refused a kernel; the message holds its diagnostics."""


class DataError(Error, ValueError):
    """A tensor whose content, shape, dtype or device does not fit."""

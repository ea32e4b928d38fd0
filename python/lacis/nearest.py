# SPDX-License-Identifier: Apache-2.0
"""Names near a misspelt one, for error messages."""

from __future__ import annotations

import difflib


def nearest(name: str, known, sign: str = "'") -> str:
    """What a message says of the names that are near: nothing where none is.

    >>> nearest("paralel", ["unroll", "parallel"])
    "; the nearest is 'parallel'"
    """
    by_case = {each.lower(): each for each in known}
    near = [by_case[each] for each in difflib.get_close_matches(name.lower(), by_case, n=3, cutoff=0.6)]
    if not near:
        return ""
    quoted = [f"{sign}{each}{sign}" for each in near]
    return f"; the nearest {'is' if len(near) == 1 else 'are'} {', '.join(quoted)}"

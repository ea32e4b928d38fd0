# SPDX-License-Identifier: Apache-2.0
"""Names of kernels: what the user asked for, and what the disk cache may return for it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

# A string, an opening or closing bracket of a location, or anything else up to the next of them.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\bloc\(|[()]|[^"()l]+|l')
_ALIAS = re.compile(r"^[ \t]*#loc\d*[ \t]*=.*\n?", re.MULTILINE)


def without_locations(text: str) -> str:
    """MLIR text without its `loc(...)` and their aliases, which change no code.

    >>> without_locations('func.return loc("train.py":12:0)')
    'func.return'
    """
    kept: list[str] = []
    depth = 0
    for match in _TOKEN.finditer(_ALIAS.sub("", text)):
        token = match.group()
        if depth:
            depth += token.endswith("(") - (token == ")")
        elif token == "loc(":
            depth = 1
            while kept and not kept[-1].rstrip():
                kept.pop()
            if kept:
                kept[-1] = kept[-1].rstrip()
        else:
            kept.append(token)
    lines = (line.rstrip() for line in "".join(kept).splitlines())
    return "\n".join(line for line in lines if line)


def _digest(*parts) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def kernel_key(text: str, target: str, options: Mapping) -> str:
    """The name of a kernel: the same on every machine, whoever wrote the text and where."""
    return _digest("kernel", without_locations(text), target, dict(options))


def cache_key(key: str, *, fingerprint: str, host: str, ptxas: str) -> str:
    """The name of one compiled form of a kernel: differs wherever the code may."""
    return _digest("code", key, fingerprint, host, ptxas)

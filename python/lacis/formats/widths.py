# SPDX-License-Identifier: Apache-2.0
"""The integer types that a format gives to its arrays."""

from __future__ import annotations

from .format import Format
from .level import Level


def without_widths(format: Format) -> Format:
    """The same storage with no word about integer types: what it is, whatever its arrays take.

    >>> print(without_widths(Format.parse("(i, j) -> (i : dense<crd=i8>, j : compressed<crd=i16>)")))
    #lacis.format<(i, j) -> (i : dense, j : compressed)>
    """
    levels = [Level(level.digits, _untyped(level.extent), _untyped(level.coordinate)) for level in format.levels]
    return Format.of(levels, format.axes, format.bindings, format.multiset, format.layout)


def _untyped(kind):
    for name in ("pos", "crd"):
        if kind.width_of(name):
            kind = kind.with_width(name, "i32")
    return kind

# SPDX-License-Identifier: Apache-2.0
"""The integer types that a format gives to its arrays."""

from __future__ import annotations

import dataclasses
import functools

from .format import Format
from .level import Level
from .sum import Sum


def without_widths(format: Format | Sum) -> Format | Sum:
    """The same storage with no word about integer types: what it is, whatever its arrays take.

    >>> print(without_widths(Format.parse("(i, j) -> (i : dense<crd=i8>, j : compressed<crd=i16>)")))
    #lacis.format<(i, j) -> (i : dense, j : compressed)>
    """
    return _each_level(format, lambda level: Level(level.digits, _untyped(level.extent), _untyped(level.coordinate)))


def weight_format(format: Format | Sum, shape) -> Format | Sum:
    """The format in which layers store a weight of `shape`: coordinates that it says no type of are narrow.

    They are i16 for up to 32768 of them, and i8 for up to 128 inside of blocks; more are left as they are. So are
    stored blocks, which take more than their coordinates do, sums, what follows from bindings, and formats that store
    no coordinate as a number.

    >>> print(weight_format(Format.parse("(i, j) -> (i : dense, j : compressed)"), (4096, 1024)))
    #lacis.format<(i, j) -> (i : dense<crd=i16>, j : compressed<crd=i16>)>
    """
    if (
        isinstance(format, Sum)
        or format.tile
        or format.bindings
        or not any(lv.coordinate.stored for lv in format.levels)
    ):
        return format
    return _each_level(format, functools.partial(_narrow, shape))


def _narrow(shape, level: Level) -> Level:
    coordinate = level.coordinate
    has_type = any(field.name == "crd" for field in dataclasses.fields(coordinate))
    if level.extent.shares or not has_type or coordinate.crd is not None:
        return level
    size, inside = level.size(shape), all(digit.mod for digit in level.digits)
    width = "i8" if inside and size <= 2**7 else "i16" if size <= 2**15 else None
    return Level(level.digits, level.extent, coordinate.with_width("crd", width))


def _each_level(format: Format | Sum, change) -> Format | Sum:
    if isinstance(format, Sum):
        parts = {name: _each_level(part, change) for name, part in format.parts.items()}
        return Sum(parts, format.predicates)
    levels = [change(level) for level in format.levels]
    return Format.of(levels, format.axes, format.bindings, format.multiset, format.layout)


def _untyped(kind):
    for name in ("pos", "crd"):
        if kind.width_of(name):
            kind = kind.with_width(name, None)
    return kind

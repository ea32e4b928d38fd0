# SPDX-License-Identifier: Apache-2.0
"""The integer types of a pattern's arrays: what a format's text says, and what they have."""

from __future__ import annotations

import torch

from ..errors import FormatError
from ..formats import Format, Level

INTEGERS = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}


def fitted(format: Format, name: str, tensor: torch.Tensor, largest: int, shape) -> torch.Tensor:
    """The array in the integer type that the format gives, else the smaller of int32 and int64 that holds all.

    The host waits for the device only where the numbers of coordinates do not tell that all fit.
    """
    asked = asked_width(format, name)
    if asked is None:
        return tensor.to(torch.int32 if largest < 2**31 else torch.int64)
    dtype, level = INTEGERS[asked], _level_of(format, name)
    known = name.startswith("crd") and level.size(format.name_sizes(shape)) - 1 <= torch.iinfo(dtype).max
    if not known and tensor.numel() and int(tensor.max()) > torch.iinfo(dtype).max:
        raise FormatError(f"'{name}' does not fit into {asked}; leave the integer type out")
    return tensor.to(dtype)


def asked_width(format: Format, name: str) -> str | None:
    """The integer type that the format gives an array, or None.

    Kernels read what a binding stores in the widest type that another array is given.
    """
    if name in format.binding_arrays:
        others = (each for each in format.buffers if each not in format.binding_arrays)
        return "i64" if any(asked_width(format, each) == "i64" for each in others) else None
    stem, level = name.rstrip("0123456789"), _level_of(format, name)
    return level.extent.width_of(stem) or level.coordinate.width_of(stem)


def _level_of(format: Format, name: str) -> Level:
    return format.levels[int(name[len(name.rstrip("0123456789")) :])]


def dtype_of(format: Format, name: str) -> torch.dtype:
    """That of an array of the format, int32 where it says nothing."""
    return INTEGERS[asked_width(format, name) or "i32"]


def with_types(format: Format, types: dict[str, torch.dtype]) -> Format:
    """The format with the integer types of its arrays, by name, in its text.

    So kernels are compiled for it: where the text says nothing, arrays are i32.
    """
    names = {torch.int8: "i8", torch.int16: "i16", torch.int32: None, torch.int64: "i64"}
    widths = {name: names[dtype] for name, dtype in types.items()}
    levels = []
    for number, level in enumerate(format.levels):
        extent, coordinate = level.extent, level.coordinate
        if coordinate.implicit and coordinate.width_of("crd") == "i32":
            coordinate = coordinate.with_width("crd", None)
        for name in level.buffers():
            if f"{name}{number}" not in widths:
                continue
            width = widths[f"{name}{number}"]
            if name in level.extent.buffers():
                extent = extent.with_width(name, width)
            else:
                coordinate = coordinate.with_width(name, width)
        levels.append(Level(level.digits, extent, coordinate))
    return Format.of(levels, format.axes, format.bindings, format.multiset, format.layout)

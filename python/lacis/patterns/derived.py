# SPDX-License-Identifier: Apache-2.0
"""Derived arrays: indices that kernels walk beyond a format's own, made on the device from the pattern."""

from __future__ import annotations

import torch

from ..errors import FormatError
from ..formats import Format
from .place import place, sort_entries
from .structure import Structure


def companion_arrays(structure: Structure, format: Format | str) -> dict[str, torch.Tensor]:
    """The arrays of a companion `format` of a structure, by name: `pos1`, `crd1`, `link2`.

    Entries are the stored blocks that are not padding, sorted by the companion's coordinates and then by slot.
    `format` ends, above its stored blocks, with a `link` level, which holds the slot of each position.
    """
    if isinstance(format, str):
        format = Format.parse(format)
    if not format.levels[len(format.prefix) - 1].extent.stands_alone:
        raise FormatError(f"a companion needs a 'link' level above its stored blocks, '{format}' has none")
    if format.tile != structure.format.tile:
        raise FormatError(
            f"a companion has the stored blocks of its format, {structure.format.tile}, not {format.tile}"
        )
    format.require_code("derive")
    axes, valid = structure.slot_axes()
    link = valid.nonzero().reshape(-1)
    axes = [axis[link] for axis in axes]
    placed = place(format, structure.shape, sort_entries(format, structure.shape, axes, link))
    wide = any(t.dtype == torch.int64 for t in structure.buffers.values()) or placed.largest >= 2**31
    return {name: t.to(torch.int64 if wide else torch.int32) for name, t in placed.buffers.items()}

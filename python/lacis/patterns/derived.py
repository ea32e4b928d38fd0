# SPDX-License-Identifier: Apache-2.0
"""Derived arrays: indices that kernels walk beyond a format's own, made on the device from the pattern."""

from __future__ import annotations

import math

import torch

from ..errors import FormatError
from ..formats import Format
from .announce import announce
from .place import fused_keys, place, sort_entries
from .structure import Structure


def companion_arrays(structure: Structure, format: Format | str) -> dict[str, torch.Tensor]:
    """The arrays of a companion `format` of a structure, by name: `pos1`, `crd1`, `link2`.

    Entries are the stored blocks that are not padding, sorted by the companion's coordinates and then by slot.
    `format` ends, above its stored blocks, with a `link` level, which holds the slot of each position. The host waits
    for the device only where levels are padded or an axis of `structure` has several digits: then it must know how
    many blocks are no padding.
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
    if _lists_every_block(structure, format):
        return _listed(structure, format)
    axes, valid = structure.slot_axes()
    if structure.format.bindings and structure.valid is not None:
        valid = valid & structure.valid  # it lists entries alone
    link = valid.nonzero().reshape(-1)
    axes = [axis[link] for axis in axes]
    placed = place(format, structure.shape, sort_entries(format, structure.shape, axes, link))
    wide = any(t.dtype == torch.int64 for t in structure.buffers.values()) or placed.largest >= 2**31
    return {name: t.to(torch.int64 if wide else torch.int32) for name, t in placed.buffers.items()}


def _lists_every_block(structure: Structure, format: Format) -> bool:
    """Is there no padding, and is the companion dense over some axes, with a list under each that may repeat?"""
    own = structure.format.prefix
    digits = [digit for level in own for digit in level.digits]
    whole = len({digit.axis for digit in digits}) == len(digits) and not any(digit.mod for digit in digits)
    below = [level for level in format.prefix[:-1] if not level.extent.covers]
    lists = bool(below) and not below[0].coordinate.unique and below[0].buffers() == ("pos", "crd")
    joined = all(level.extent.follows and not level.padded for level in below[1:])
    if structure.format.bindings:
        return False
    padded = any((level.padded and not level.extent.covers) or level.extent.gaps for level in own)
    return whole and lists and joined and not padded


def _listed(structure: Structure, format: Format) -> dict[str, torch.Tensor]:
    """The arrays of a companion that lists every stored block."""
    shape, levels = structure.shape, format.prefix[:-1]
    axes, _ = structure.slot_axes()
    crds, sizes = [level.coordinate_of(axes, shape) for level in levels], [level.size(shape) for level in levels]
    order = torch.arange(structure.slots, device=structure.device)
    for key in reversed(fused_keys(crds, sizes)):
        order = order[torch.sort(key[order], stable=True).indices]
    lead = sum(level.extent.covers for level in levels)
    parents, parent = math.prod(sizes[:lead]), torch.zeros_like(order)
    for crd, size in zip(crds[:lead], sizes):
        parent = parent * size + crd
    announce(parents + 1, levels[lead].kind, str(format))
    bounds = torch.arange(parents + 1, device=structure.device)
    buffers = {f"pos{lead}": torch.searchsorted(parent[order], bounds)}
    buffers |= {f"crd{number}": crds[number][order] for number in range(lead, len(levels))}
    buffers[f"link{len(levels)}"] = order
    largest = max([*shape, *sizes, parents, structure.slots * math.prod(format.tile)])
    wide = any(t.dtype == torch.int64 for t in structure.buffers.values()) or largest >= 2**31
    return {name: t.to(torch.int64 if wide else torch.int32) for name, t in buffers.items()}

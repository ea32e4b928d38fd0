# SPDX-License-Identifier: Apache-2.0
"""Room: arrays that are longer than the positions that `pos` counts, so that other patterns fit where these lie.

Slots from the last position on have coordinate -1 and value 0, and values there get gradient 0.
"""

from __future__ import annotations

import dataclasses

import torch

from ..formats import Format


def may_have_room(format) -> bool:
    """Is there one level whose positions `pos` counts, dense levels above it, one position under each of its own below?

    So have CSR, CSC, COO and BSR. A fixed width says itself how long the arrays are, and the parts of a sum share
    entries by the width of the first, so they have none.

    >>> from lacis.formats import Csr, Dcsr
    >>> may_have_room(Csr()), may_have_room(Dcsr())
    (True, False)
    """
    if not isinstance(format, Format) or format.bindings:
        return False
    levels = list(format.prefix)
    while levels and levels[0].extent.covers:
        levels.pop(0)
    stored = all(level.coordinate.stored and not level.padded for level in levels)
    counted = bool(levels) and levels[0].extent.counts
    return counted and stored and all(level.extent.follows for level in levels[1:])


def is_longer(format, buffers: dict[str, torch.Tensor], slots: int) -> bool:
    """Do arrays have room? The host waits for the device."""
    return may_have_room(format) and all(t.numel() and int(t[-1]) < slots for t in _positions(buffers))


def _positions(buffers: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The array that counts."""
    return [tensor for name, tensor in buffers.items() if name.startswith("pos")]


def room_bytes(structure, values: torch.Tensor) -> int:
    """Bytes of what lies behind the last position: values, coordinates and validity."""
    exact = without_room(structure)
    held = [tensor for name, tensor in structure.buffers.items() if name.startswith("crd")]
    held += [values] if structure.valid is None else [values, structure.valid]
    return sum(t.nbytes // max(len(t), 1) for t in held) * (structure.slots - exact.slots) if structure.has_room else 0


def with_room(structure, slots: int):
    """The structure with so many slots, at least its own, on which the host need not wait."""
    more = slots - structure.slots
    buffers = {name: _longer(name, tensor, more) for name, tensor in structure.buffers.items()}
    valid = structure.valid
    if valid is not None:
        valid = torch.cat([valid, valid.new_zeros(more, *valid.shape[1:])])
    return dataclasses.replace(structure, buffers=buffers, slots=slots, valid=valid, has_room=True)


def without_room(structure):
    """The structure with as many slots as positions; the host waits for the device where there may be fewer."""
    if not structure.has_room:
        return structure
    slots = int(_positions(structure.buffers)[0][-1])
    buffers = {name: t[:slots] if name.startswith("crd") else t for name, t in structure.buffers.items()}
    valid = None if structure.valid is None else structure.valid[:slots]
    return dataclasses.replace(structure, buffers=buffers, slots=slots, valid=valid, has_room=False)


def _longer(name: str, tensor: torch.Tensor, more: int) -> torch.Tensor:
    return torch.cat([tensor, tensor.new_full((more,), -1)]) if name.startswith("crd") else tensor

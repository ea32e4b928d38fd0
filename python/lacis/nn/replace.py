# SPDX-License-Identifier: Apache-2.0
"""Another pattern for a packed part: made and checked as a whole, then written where the one before lies."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import torch

from ..errors import DataError
from ..patterns import Pattern
from ..patterns.structure import Structure
from .arrays import as_buffer
from .sharded import is_sharded, local, shared_out


class Replacement:
    """A pattern and its values for a part, with all that is derived from them, and not yet in it.

    Tensors as long as those before are written where these lie, so that whoever holds them sees the new pattern: a
    captured CUDA graph, the buckets of DDP, a compiled graph. `assigned` tensors are taken as they are. Without
    `derives` somebody else makes what is derived, of as many slots as before.
    """

    def __init__(self, part, structure: Structure, values: torch.Tensor, assigned: bool = False, derives: bool = True):
        self._part, self._assigned, self._derives = part, assigned, derives
        self._pattern = Pattern(structure.format, {"": structure})
        own = {**structure.buffers, "valid": structure.valid}
        self._values, self._own = values.detach(), {name: as_buffer(tensor) for name, tensor in own.items()}
        if not assigned:
            self._values = self._apart(self._values.to(part.values.dtype))
            self._own = {name: self._apart(tensor) for name, tensor in self._own.items()}
        self._derived = part.derived_of(self._pattern, self._values) if derives else {}
        if is_sharded(part.values):
            self._refuse_other_slots()
            self._values = shared_out(self._values, part.values)  # the whole is not held until it is written
        if part.is_captured:
            self._refuse_moves()

    def _apart(self, tensor: torch.Tensor | None) -> torch.Tensor | None:
        """The tensor, or a copy of one that lies where the part's own tensors do."""
        tensors = [local(self._part.values), *self._part.own_arrays.values()]
        held = {each.untyped_storage()._cdata for each in tensors}
        return tensor if tensor is None or tensor.untyped_storage()._cdata not in held else tensor.clone()

    def _refuse_other_slots(self) -> None:
        """Raise `DataError` where ranks would have to share out another number of slots than they do."""
        now, then = list(self._part.values.shape), list(self._values.shape)
        if self._assigned or now != then:
            raise DataError(
                f"the values {now} are shared out over ranks, and cannot become {then}; give a pattern with as many "
                "slots, or change it before the model is sharded (fully_shard)"
            )

    def _refuse_moves(self) -> None:
        """Raise `DataError` where an array that a CUDA graph walks would lie elsewhere."""
        part = self._part
        new = {"values": self._values, **self._own, **self._derived}
        moved = [name for name, tensor in new.items() if not _fits(getattr(part, name), tensor)]
        if moved and _graphs_live():
            old = getattr(part, moved[0])
            was, now = (list(t.shape) if t is not None else None for t in (old, new[moved[0]]))
            raise DataError(
                f"'{moved[0]}' {was} would become {now}, but a CUDA graph was captured that walks it; give a pattern "
                "with as many slots, or delete the graph and capture it again afterwards"
            )

    def write(self) -> None:
        """Put it into the part; nothing here can fail."""
        with torch.inference_mode(self._part.values.is_inference()), torch.no_grad():  # as it was made
            self._assign() if self._assigned else self._copy()
            put_all(self._part, self._derived)
        self._part.has_room |= self._pattern.part().has_room  # captured graphs have kernels for it
        self._part.note_pattern(self._pattern) if self._derives else self._part.note_written()

    def _assign(self) -> None:
        part = self._part
        part.values = torch.nn.Parameter(self._values, part.values.requires_grad)
        part.all_valid = part.all_valid.new_zeros(0, device=self._values.device)
        for name, tensor in self._own.items():
            setattr(part, name, tensor)

    def _copy(self) -> None:
        _put_values(self._part.values, self._values)
        put_all(self._part, self._own, is_ours=False)


def _put_values(parameter: torch.nn.Parameter, values: torch.Tensor) -> None:
    """Into the same Parameter, which has no gradient of the new pattern yet."""
    parameter.grad = None
    if _fits(parameter, values):
        parameter.copy_(values)
    else:
        other = torch.float32 if parameter.dtype == torch.float64 else torch.float64
        parameter.data = values.new_empty(0, dtype=other)  # a graph that is still held knows the shape before
        parameter.data = values.clone()


def put_all(part, tensors: dict[str, torch.Tensor | None], is_ours: bool = True) -> None:
    """Arrays in place of the part's: written where these lie, or where one does not fit, itself or a copy."""
    written = []
    for name, tensor in tensors.items():
        held = getattr(part, name)
        if held is not None and tensor is not None and _fits(held, tensor):
            written.append((held, tensor))
        else:
            setattr(part, name, tensor if tensor is None or is_ours else tensor.clone())
    write_all(written)


def write_all(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Into the first of each pair the second, of its size and type: a GPU does a hundred of one type in one launch."""
    by_type: dict[torch.dtype, tuple[list, list]] = {}
    for pair in pairs:
        for side, each in zip(by_type.setdefault(pair[0].dtype, ([], [])), pair):
            side.append(each)
    for those, others in by_type.values():
        torch._foreach_copy_(those, others)


def _fits(held: torch.Tensor | None, tensor: torch.Tensor | None) -> bool:
    if held is None or tensor is None:
        return held is tensor
    alike = held.shape == tensor.shape and held.dtype == tensor.dtype and held.device == tensor.device
    return alike and not held.is_inference()


def _graphs_live() -> bool:
    """Does this process hold a CUDA graph, beside those of updates? Which tensors it walks, torch does not say."""
    graphs = (found for found in gc.get_objects() if issubclass(type(found), torch.cuda.CUDAGraph))
    return any(not getattr(graph, "is_update", False) for graph in graphs)

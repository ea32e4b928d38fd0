# SPDX-License-Identifier: Apache-2.0
"""A packed checkpoint that a model on the meta device is built from, one weight after another."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

from ..errors import DataError, ScheduleError
from ..formats import Sum
from ..formats.widths import weight_format
from ..nn.load import integers
from ..packing import PackedTensor
from ..patterns.widths import asked_width, dtype_of
from .swap import Undo

_ALIGNED = 64  # bytes: what begins elsewhere kernels would copy at each call


class Checkpoint:
    """What the `state_dict()` of a built model holds, by name: in memory, or in a file that is read piece by piece."""

    def __init__(self, given, device):
        self._given, self._file, self.device = given, None, torch.device(device)
        if self.device.type == "meta":
            raise DataError("build_from: the meta device keeps no numbers; name the one that the model is to run on")
        if isinstance(given, (str, os.PathLike)):
            path = os.fspath(given)
            if path.endswith(".safetensors"):
                self._file = path
            else:
                self._given = torch.load(path, mmap=True, weights_only=True, map_location="cpu")
        if self._file is None and not isinstance(self._given, Mapping):
            raise DataError(f"build_from: a state dict or the path of one is expected, not {type(given).__name__}")
        self.names = self._names()

    def _names(self) -> list[str]:
        if self._file is None:
            return list(self._given)
        with self._opened() as file:
            return list(file.keys())

    def _opened(self):
        from safetensors import safe_open

        return safe_open(self._file, framework="pt")

    def read(self, names) -> dict[str, torch.Tensor]:
        """These tensors, on the device. A file of safetensors is open meanwhile only: what was read of it is freed."""
        if self._file is None:
            return {name: self._moved(name, self._given[name]) for name in names}
        with self._opened() as file:
            return {name: self._moved(name, file.get_tensor(name)).clone() for name in names}

    def _moved(self, name: str, tensor) -> torch.Tensor:
        if not isinstance(tensor, torch.Tensor) or tensor.is_meta:
            raise DataError(f"build_from: '{name}' of the checkpoint is no tensor that holds numbers")
        moved = tensor.detach().to(self.device)
        return moved.clone() if moved.data_ptr() % _ALIGNED else moved


class Stored:
    """A checkpoint beside the model and the schedule that it belongs to."""

    def __init__(self, model, schedule, checkpoint: Checkpoint):
        self.model, self.checkpoint = model, checkpoint
        self._arrays: dict[str, dict[str, str]] = {}  # by site: of each array its name in the checkpoint
        self._rest = dict.fromkeys(checkpoint.names)
        for site in schedule.sites:
            if site.is_packed and site.master is None:
                self._arrays[site.name] = self._arrays_of(site)

    def _arrays_of(self, site) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in site.names:
            own = {each.removeprefix(f"{name}."): each for each in self._rest if each.startswith(f"{name}.")}
            found = found or own
            for each in own.values():
                del self._rest[each]
        if not found:
            dense = [name for name in site.names if name in self._rest]
            said = "is dense in the checkpoint; load it, then build()" if dense else "is not in the checkpoint"
            raise DataError(f"build_from: '{site.name}' {said}", location=site.location)
        return found

    def packed(self, captured) -> PackedTensor | None:
        """What the checkpoint has of a parameter, checked; None where that stays dense. Raises `DataError`."""
        site = captured.site
        if site.name not in self._arrays:
            return None
        shape = tuple(site.shape)
        if len(site.axes) < len(shape):
            shape = captured.owners[0].operator.matrix(shape)
        names = self._arrays[site.name]
        arrays, format = self.checkpoint.read(names.values()), weight_format(site.format(), shape)
        given = {key: arrays[name] for key, name in names.items()}
        if not isinstance(format, Sum):
            for key in format.buffers:
                if asked_width(format, key) and key in given:
                    given[key] = integers(key, given[key], dtype_of(format, key))
        return PackedTensor.from_storage(format, shape, given)

    def fill(self, schedule, undo: Undo) -> None:
        """Give the dense parameters and buffers what the checkpoint has; those that will be packed have no memory.

        Raises `DataError` for a name that is on one side alone.
        """
        packed = {name for site in schedule.sites if site.name in self._arrays for name in site.names}
        places: dict[int, list] = {}  # of tensors that are one
        for path, module in self.model.named_modules():
            for held in (module._parameters, module._buffers):
                for name, tensor in held.items():
                    if tensor is not None:
                        full = f"{path}.{name}" if path else name
                        places.setdefault(id(tensor), []).append((full, held, name))
        for found in places.values():
            names, (_, held, name) = [full for full, _, _ in found], found[0]
            given = next((full for full in names if full in self._rest), None)
            if given is None and not held[name].is_meta:
                continue
            new = self._made(names[0], given, held[name], names[0] in packed)
            for full, holder, key in found:
                self._rest.pop(full, None)
                undo.will_set(holder, key)
                holder[key] = new
        if self._rest:
            raise DataError(f"build_from: the model has no '{next(iter(self._rest))}', which the checkpoint has")

    def _made(self, name: str, given: str | None, old: torch.Tensor, is_packed: bool) -> torch.Tensor:
        if is_packed:
            new = torch.zeros((), dtype=old.dtype, device=self.checkpoint.device).expand(old.shape)
        elif given is None:
            raise DataError(
                f"build_from: '{name}' is on the meta device, and not in the checkpoint; give it numbers first"
            )
        else:
            new = self.checkpoint.read([given])[given]
            if new.shape != old.shape:
                raise DataError(f"build_from: '{given}' is {list(new.shape)} in the checkpoint, not {list(old.shape)}")
        return torch.nn.Parameter(new, old.requires_grad) if isinstance(old, torch.nn.Parameter) else new


def require_parameters(schedule) -> None:
    """Raise `ScheduleError` where a schedule says something of activations."""
    for edge in [*schedule.edges, *schedule.modules]:
        raise ScheduleError(
            f"build_from: '{edge.name}' is no parameter, of which alone a checkpoint says something; load the model, "
            "then build()",
            location=edge.location,
        )

# SPDX-License-Identifier: Apache-2.0
"""Loads the arrays of a packed part from a state dict, checked as a whole before anything changes."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..packing import PackedTensor
from .arrays import as_array
from .replace import Replacement
from .sharded import shared_out, whole


def load_part(part, state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs) -> None:
    """As `torch.nn.Module._load_from_state_dict`; another number of entries resizes the same Parameter.

    Arrays that are malformed add a message and change nothing. With `assign=True` the tensors of the state dict take
    the place of the part's, on their device and in their dtype. Values that ranks share out stay so; all load then.
    """
    assigned = metadata.get("assign_to_params_buffers", False)
    needed = [*part.format.buffers, "values"]
    given = {name: state_dict[prefix + name] for name in [*needed, "valid"] if prefix + name in state_dict}
    missing = [name for name in needed if name not in given]
    if strict:
        missing_keys.extend(prefix + name for name in missing)
        known = {*needed, "valid"}
        unexpected_keys.extend(k for k in state_dict if k.startswith(prefix) and k[len(prefix) :] not in known)
    if missing:
        if len(missing) < len(needed) and not strict:
            error_msgs.append(f"'{prefix}{missing[0]}' is missing: the arrays of a packed weight load together")
        return
    try:
        structure, values = _checked(part, given, assigned)
        if not assigned and part.holds_pattern(structure):
            with torch.no_grad():
                part.values.copy_(shared_out(values, part.values))
        else:
            Replacement(part, structure, values, assigned).write()
    except DataError as error:
        error_msgs.append(f"while loading '{prefix.removesuffix('.')}': {error.message}")


def _checked(part, given, assigned: bool):
    """The structure and values, unless `assigned` on the part's device, in its integer width. Raises `DataError`."""
    if part.values.is_meta and not assigned:
        raise DataError("the weight is on the meta device, where nothing is kept; load it with assign=True")
    moved = {}
    for name, tensor in given.items():
        if not isinstance(tensor, torch.Tensor):
            raise DataError(f"'{name}' must be a tensor, not {type(tensor).__name__}")
        if tensor.is_meta:
            raise DataError(f"'{name}' is on the meta device and holds no numbers; load a state dict that does")
        tensor = whole(tensor.detach())
        moved[name] = tensor if assigned else tensor.to(part.values.device)
        if name in part.format.buffers:
            moved[name] = integers(name, moved[name], part.array(name).dtype)
    packed = PackedTensor.from_storage(part.format, part.packed_shape, moved)
    return packed.pattern.part(), packed.values


def integers(name: str, buffer: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What a buffer of a state dict holds, in this type. Raises `DataError` for other than integers that fit."""
    array = as_array(buffer)
    _check_integers(name, array, dtype)
    return array.to(dtype)


def _check_integers(name, tensor, dtype) -> None:
    if tensor.dtype not in (torch.int8, torch.int16, torch.int32, torch.int64):
        raise DataError(f"'{name}' must hold integers, not {tensor.dtype}")
    held, wanted = torch.iinfo(tensor.dtype), torch.iinfo(dtype)
    if held.bits <= wanted.bits or not tensor.numel():
        return
    if int(tensor.max()) > wanted.max or int(tensor.min()) < wanted.min:
        raise DataError(f"'{name}' does not fit into {dtype}; build the model on the larger pattern")

# SPDX-License-Identifier: Apache-2.0
"""Loads the arrays of a packed part from a state dict, checked as a whole before anything changes."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..packing import PackedTensor


def load_part(part, state_dict, prefix, strict, missing_keys, unexpected_keys, error_msgs) -> None:
    """As `torch.nn.Module._load_from_state_dict`; another number of entries resizes the same Parameter.

    Arrays that are malformed add a message and change nothing.
    """
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
        structure, values = _checked(part, given)
    except DataError as error:
        error_msgs.append(f"while loading '{prefix.removesuffix('.')}': {error.message}")
        return
    with torch.no_grad():
        same = values.shape == part.values.shape and _same(part.structure, structure)
        if same:
            part.values.copy_(values)
        else:
            part.set_part(structure, values)


def _checked(part, given):
    """The structure and values on the part's device, in its integer width. Raises `DataError`."""
    device = part.values.device
    present = {name: getattr(part, name) for name in part.format.buffers}
    moved = {}
    for name, tensor in given.items():
        if not isinstance(tensor, torch.Tensor):
            raise DataError(f"'{name}' must be a tensor, not {type(tensor).__name__}")
        tensor = tensor.detach().to(device)
        if name in present:
            _check_integers(name, tensor, present[name].dtype)
            tensor = tensor.to(present[name].dtype)
        moved[name] = tensor.clone() if tensor.data_ptr() == given[name].data_ptr() else tensor
    packed = PackedTensor.from_storage(part.format, part.shape, moved)
    return packed.pattern.part(), packed.values


def _check_integers(name, tensor, dtype) -> None:
    if tensor.dtype not in (torch.int8, torch.int16, torch.int32, torch.int64):
        raise DataError(f"'{name}' must hold integers, not {tensor.dtype}")
    if tensor.numel() and int(tensor.max()) > torch.iinfo(dtype).max:
        raise DataError(f"'{name}' does not fit into {dtype}; build the model on the larger pattern")


def _same(old, new) -> bool:
    if (old.valid is None) != (new.valid is None):
        return False
    pairs = [(old.buffers[name], new.buffers[name]) for name in old.buffers]
    pairs += [(old.valid, new.valid)] if old.valid is not None else []
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)

# SPDX-License-Identifier: Apache-2.0
"""Refuses arrays that no kernel may see, by name and place."""

from __future__ import annotations

import operator

import torch

from ..errors import DataError
from ..formats import Sum
from ..patterns.build import for_tensor
from ..patterns.plain import check_plain
from ..patterns.pattern import Pattern, part_name
from ..patterns.places import has_no_padding
from ..patterns.room import is_longer
from ..patterns.structure import Structure
from ..patterns.widths import INTEGERS, asked_width
from .check_values import check_values
from .packed import PackedTensor


def from_storage(format, shape, storage, values=None) -> PackedTensor:
    """A packed tensor over given arrays, which are checked first.

    `storage` maps names to tensors: the integer arrays that `.storage` lists, and also `values` and (where the
    stored blocks have padding) bool `valid`, each with the part's name before it in a sum. `values` may be given
    apart. Integer arrays are int32, or all int64, on one device.

    Raises `DataError` with the array and the place: a missing or unknown name, wrong dtype, device, shape or length,
    coordinates that are negative, out of range, unsorted or there twice, positions that do not add up, padding that
    is not 0.
    """
    shape = _sizes(shape)
    format = for_tensor(format, shape)
    formats = format.parts if isinstance(format, Sum) else {"": format}
    given = dict(storage)
    if values is not None:
        named = values if isinstance(format, Sum) else {"": values}
        given.update({part_name(name, "values"): tensor for name, tensor in named.items()})
    _check_names(formats, given)
    _check_kinds(formats, given)
    parts, tensors = {}, {}
    for name, part in formats.items():
        parts[name], tensors[name] = _part(name, part, shape, given)
    packed = PackedTensor(Pattern(format, parts), tensors)
    validate(packed)
    return packed


def _sizes(shape) -> tuple[int, ...]:
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise DataError(f"a shape has a whole number for each axis, not {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise DataError(f"a shape has no negative sizes: {list(sizes)}")
    if any(size >= 2**63 for size in sizes):
        raise DataError(f"a shape has sizes of 64 bits: {list(sizes)}")
    return sizes


def _check_names(formats, given) -> None:
    needed = {part_name(p, name) for p, part in formats.items() for name in (*part.buffers, "values")}
    allowed = needed | {part_name(p, "valid") for p in formats}
    for name in needed:
        if name not in given:
            raise DataError(f"'{name}' is missing; the format stores {', '.join(sorted(needed))}")
    for name in given:
        if name not in allowed:
            raise DataError(f"'{name}' does not belong to the format, which stores {', '.join(sorted(needed))}")
    for name, tensor in given.items():
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            raise DataError(f"'{name}' must be a dense tensor, not {getattr(tensor, 'layout', type(tensor).__name__)}")
        check_plain(f"'{name}'", tensor)


def _check_kinds(formats, given) -> None:
    """One device; the integer types that the format gives, else int32 throughout or int64 throughout."""
    device = given[next(part_name(p, "values") for p in formats)].device
    free = set()
    for name, tensor in given.items():
        if tensor.device != device:
            raise DataError(f"'{name}' is on {tensor.device}, the values on {device}")
        part, _, short = name.rpartition(".")
        if short == "values":
            continue
        if short == "valid":
            if tensor.dtype != torch.bool:
                raise DataError(f"'{name}' must be bool, not {tensor.dtype}")
            continue
        asked = asked_width(formats[part], short)
        if tensor.dtype not in ((INTEGERS[asked],) if asked else (torch.int32, torch.int64)):
            raise DataError(f"'{name}' must be {asked or 'int32 or int64'}, not {tensor.dtype}")
        free |= set() if asked else {tensor.dtype}
    if len(free) > 1:
        raise DataError("the integer arrays must be all int32 or all int64")


def _part(name, format, shape, given):
    values = given[part_name(name, "values")]
    batch, tile = tuple(level.copies(shape) for level in format.batch), format.tile
    first = len(batch)
    if values.ndim != first + 1 + len(tile) or (*values.shape[:first], *values.shape[first + 1 :]) != (*batch, *tile):
        want = [*batch, "slots", *tile]
        raise DataError(f"'{part_name(name, 'values')}' must have shape {want}, not {list(values.shape)}")
    buffers = {key: given[part_name(name, key)].contiguous() for key in format.buffers}
    valid = given.get(part_name(name, "valid"))
    if valid is not None and valid.numel() == 0:
        valid = None  # as kernels take it: every stored value is an entry
    longer = is_longer(format, buffers, values.shape[len(format.batch)])
    structure = Structure.of_values(format, shape, buffers, values, valid, has_room=longer)
    return structure, values.contiguous()


def validate(packed: PackedTensor) -> None:
    """Raise `DataError` unless the arrays of a packed tensor are well formed, and its padding is 0."""
    packed.pattern.validate()
    for name, part in packed.pattern.parts.items():
        values = packed.tensors[part_name(name, "values")]
        check_values(part_name(name, "values"), values, part.values_shape, packed.pattern.device)
        if has_no_padding(part) and not part.format.bindings:
            continue
        _, entry = part.coordinates()
        filled = (values.detach().reshape(-1) != 0) & ~entry
        if bool(filled.any()):
            at = int(filled.to(torch.uint8).argmax())
            raise DataError(
                f"'{part_name(name, 'values')}' at [{at}]: padding must be 0, not {values.reshape(-1)[at].item()}"
            )

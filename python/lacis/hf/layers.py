# SPDX-License-Identifier: Apache-2.0
"""The packed layers of a model as plain JSON, the same without numbers, and the check of what was put into them."""

from __future__ import annotations

import torch

from ..errors import DataError, Error
from ..formats import Format, Sum
from ..nn import SparseModule, weight_module
from ..nn.arrays import as_array
from ..operators import OPERATORS
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.pattern import part_name
from ..patterns.structure import Structure
from ..runtime.compile import load_kernel
from ..runtime.edges import Edge
from ..schedule.saved import steps_from_json, steps_to_json

_FIELDS = {"operator": str, "format": str, "shape": list, "arrays": dict, "entries": int, "trains": bool, "steps": list}
_MORE = {"gradients": dict, "deterministic": bool, "strict": bool}


def describe(model: torch.nn.Module) -> dict[str, dict]:
    """What makes the packed layers of a model again, by path: all but the arrays. Raises `DataError` by name."""
    found: dict[str, dict] = {}
    paths: dict[int, str] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        for hook in [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]:
            if isinstance(getattr(hook, "__self__", None), Edge):
                raise DataError(f"'{path}' packs an activation, which no file of a model keeps; save the schedule too")
        if not isinstance(module, SparseModule):
            for name, child in module.named_children():
                if getattr(child, "is_packed_weight", False):
                    raise DataError(keeps_no(f"{path}.{name}" if path else name))
            continue
        first = paths.setdefault(id(module.weight), path)
        if first != path:
            raise DataError(f"'{path}' has the packed weight of '{first}', and a file keeps a tied one once only")
        found[path] = _of_layer(path, module)
    return found


def keeps_no(name: str) -> str:
    """What is said of a packed weight that its module multiplies with itself."""
    return (
        f"'{name}' is packed, and is no layer's weight but a matrix that its module multiplies with itself, which no "
        "file of transformers keeps; torch.save(model.state_dict(), file) does, for a model of the same schedule"
    )


def _of_layer(path: str, module: SparseModule) -> dict:
    weight = module.weight
    arrays = {}
    for name, part in weight._named_parts():
        for key, tensor in {**part.own_arrays, "values": part.values}.items():
            held = as_array(tensor)
            dtype = None if key == "values" else str(held.dtype).removeprefix("torch.")
            arrays[part_name(name, key)] = [dtype, list(held.shape)]
    return {
        "operator": module.operator,
        "format": str(weight.format),
        "shape": list(weight.shape),
        "arrays": arrays,
        "entries": weight.packed().nnz,
        "trains": weight.requires_grad,
        "steps": steps_to_json(path, module.steps),
        "gradients": {slot: steps_to_json(path, steps) for slot, steps in module.gradient_steps.items()},
        "deterministic": module.deterministic,
        "strict": module.strict,
    }


def check_fields(layers) -> None:
    """Raise `DataError` unless this is JSON as `describe` makes it, as far as that can be said without the model."""
    if not isinstance(layers, dict):
        raise DataError(f"the layers of a model are named, not {type(layers).__name__}")
    for path, fields in layers.items():
        if not isinstance(fields, dict) or set(fields) != {*_FIELDS, *_MORE}:
            raise DataError(f"'{path}': a packed layer has the fields {', '.join([*_FIELDS, *_MORE])}")
        for name, kind in {**_FIELDS, **_MORE}.items():
            if type(fields[name]) is not kind:
                raise DataError(f"'{path}': '{name}' must be {kind.__name__}, not {fields[name]!r}")
        if fields["operator"] not in OPERATORS:
            raise DataError(f"'{path}': no operator {fields['operator']!r}; there are {', '.join(OPERATORS)}")
        for sizes in [fields["shape"], *map(_sizes_of, fields["arrays"].values())]:
            if not all(type(size) is int and 0 <= size < 2**40 for size in sizes):
                raise DataError(f"'{path}': {sizes} are no sizes of an array")


def _sizes_of(array) -> list:
    well = isinstance(array, list) and len(array) == 2 and isinstance(array[1], list)
    return array[1] if well and (array[0] is None or array[0] in _DTYPES) else ["no dtype and sizes"]


_DTYPES = {name: getattr(torch, name) for name in ("int8", "int16", "int32", "int64", "bool")}


def skeleton(model: torch.nn.Module, layers: dict[str, dict], target: str) -> dict[str, SparseModule]:
    """The packed layers by path, on the meta device, to take the place of the dense ones of a model that lies there.

    Raises `DataError` with the path for a description that fits neither the model nor itself.
    """
    made = {}
    for path, fields in layers.items():
        try:
            made[path] = _layer(model, path, fields, target)
        except (Error, AttributeError, RuntimeError, TypeError, ValueError, OverflowError) as error:
            said = error.message if isinstance(error, Error) else str(error)
            raise DataError(f"'{path}': {said.removeprefix(f'{path!r}: ')}") from error
    return made


def _layer(model, path: str, fields: dict, target: str) -> SparseModule:
    dense, operator = model.get_submodule(path), OPERATORS[fields["operator"]]
    if not operator.matches(dense):
        raise DataError(f"a {type(dense).__name__} is no layer of the operator '{operator.name}'")
    parameter = getattr(dense, operator.attribute)
    if list(parameter.shape) != fields["shape"]:
        raise DataError(f"the model's weight is {list(parameter.shape)}, the packed one {fields['shape']}")
    format, shape = Format.parse(fields["format"]), tuple(fields["shape"])
    packed_shape = operator.matrix(shape) if format.rank < len(shape) else shape
    parts = format.parts if isinstance(format, Sum) else {"": format}
    named = {name: (_DTYPES.get(kind, parameter.dtype), sizes) for name, (kind, sizes) in fields["arrays"].items()}
    structures, values = {}, {}
    for name, part in parts.items():
        arrays = {key: _empty(named, part_name(name, key)) for key in part.buffers}
        valid = _empty(named, part_name(name, "valid")) if part_name(name, "valid") in named else None
        values[name] = _empty(named, part_name(name, "values"))
        structures[name] = Structure.of_values(part, packed_shape, arrays, values[name], valid)
    if named:
        raise DataError(f"the format stores no {', '.join(map(repr, named))}")
    weight = weight_module(PackedTensor(Pattern(format, structures), values), fields["trains"], shape)
    steps = steps_from_json(fields["steps"])
    gradients = {slot: steps_from_json(each) for slot, each in fields["gradients"].items()}
    options = {"deterministic": fields["deterministic"], "strict": fields["strict"]}
    known = dict(steps=steps, gradient_steps=gradients, name=path, **options)
    return SparseModule(dense, operator.name, weight, target, load_kernel, **known)


def _empty(named: dict, name: str) -> torch.Tensor:
    if name not in named:
        raise DataError(f"the array '{name}' is missing")
    dtype, sizes = named.pop(name)
    return torch.empty(sizes, dtype=dtype, device="meta")


def check_loaded(path: str, module: SparseModule, fields: dict, was_loaded) -> None:
    """Raise `DataError`, with the path, unless all arrays were loaded, of the dtypes and sizes said, and well formed.

    `was_loaded(tensor)` says whether a tensor came from the file.
    """
    weight = module.weight
    for name, part in weight._named_parts():
        for key, tensor in {**part.own_arrays, "values": part.values}.items():
            full = part_name(name, key)
            dtype, sizes = fields["arrays"][full]
            if tensor.is_meta or not was_loaded(tensor):
                raise DataError(f"'{path}': the array '{full}' is missing in the file")
            held = as_array(tensor)
            fits = held.is_floating_point() if dtype is None else held.dtype == _DTYPES[dtype]
            if list(held.shape) != sizes or not fits:
                raise DataError(f"'{path}': the array '{full}' is {held.dtype} {list(held.shape)}, not {sizes}")
    try:
        weight.follow()
        weight.validate()
    except DataError as error:
        raise DataError(f"'{path}': {error.message}") from None
    if weight.packed().nnz != fields["entries"]:
        raise DataError(f"'{path}': the arrays name {weight.packed().nnz} entries, the file {fields['entries']}")

# SPDX-License-Identifier: Apache-2.0
"""The arrays of a packed operand as kernels and those of their gradients name them."""

from __future__ import annotations

from ..capture import KernelSpec
from ..capture.gradient import VALUES
from ..formats import Format
from ..patterns.derivation import Array

OWN_VALUES: Array = ("", "", VALUES)


def arrays_of(packed, names) -> list:
    """The tensors of a packed operand, or of a pattern, with these names.

    What a step makes is looked up once for all of its arrays.
    """
    found, made = [], {}
    for part, step, name in names:
        if not step or name == VALUES:
            found.append(packed.array(part, step, name))
            continue
        key = part, id(step)
        if key not in made:
            made[key] = packed.derived(step, part)
        found.append(made[key][name])
    return found


def in_part(array: Array, slot: str) -> Array:
    """The array of a part's kernel by its name in the sum."""
    part, dot, _ = slot.rpartition(f".{VALUES}")
    return (part, *array[1:]) if dot else array


def out_of_part(array: Array, slot: str) -> Array:
    """The array by the name that the kernel of the slot's part has for it; another part's keeps its name."""
    part = slot.rpartition(f".{VALUES}")[0]
    return ("", *array[1:]) if array[0] == part else array


def stored_in_part(spec: KernelSpec, slot: str) -> list[Array]:
    """What a part of a sum stores beside its values, by its names in the sum; `spec` is of the slot's gradient.

    That gradient is a kernel of the part alone. The kernels of its own gradients choose what they walk for this part,
    where those of the sum chose for all of its parts, so a second derivative may walk what no first one does.
    """
    if not slot.endswith(f".{VALUES}"):
        return []
    buffers = Format.parse(spec.operands[spec.packed].format).buffers
    return [in_part(("", "", name), slot) for name in buffers if name != VALUES]


def values_slot(array: Array) -> str | None:
    """The slot of an array of values; None for an array of the pattern.

    >>> values_slot(("ell", "", "values")), values_slot(("", "", "pos1"))
    ('ell.values', None)
    """
    part, step, name = array
    if step or name != VALUES:
        return None
    return f"{part}.{VALUES}" if part else VALUES

# SPDX-License-Identifier: Apache-2.0
"""Gradients at the level of the statement: each is a kernel of its own, with the roles of the operands swapped."""

from __future__ import annotations

import dataclasses

from ..formats import Format, Sum
from .spec import KernelSpec, Operand

VALUES = "values"


def gradient_specs(spec: KernelSpec) -> dict[str, KernelSpec]:
    """The kernels of a kernel's gradients, by what they are the gradient of; none for other semirings than plus-times.

    That is the name of a dense operand, or `values` (`ell.values` of a part) for the packed one. A product is linear
    in each operand and in what arrives for its output, so each kernel multiplies all of them but one; the gradient of
    the values is sampled on the pattern, part by part. Letters that only the operand itself has are left out of its
    gradient, which is the same along them. The bias has no kernel: its gradient is a plain sum. Where the output is
    sampled, what arrives has the pattern of the packed operand, whose own values it multiplies element by element.

    >>> import torch
    >>> csr = "#lacis.format<(i, j) -> (i : dense, j : compressed)>"
    >>> w = Operand("w", ("i", "j"), torch.float32, csr)
    >>> x, y = Operand("x", ("b", "j"), torch.float32), Operand("y", ("b", "i"), torch.float32)
    >>> for name, found in gradient_specs(KernelSpec("linear", (w, x), y)).items():
    ...     print(name, [o.name for o in found.operands], "->", found.output.name, found.output.format is None)
    values ['w', 'x', 'y'] -> w False
    x ['w', 'y'] -> x True
    """
    found: dict[str, KernelSpec] = {}
    for operand in spec.operands if spec.semiring == "plus_times" else ():
        if operand.format is None:
            found[operand.name] = _of_dense(spec, operand)
        elif operand.dtype is not None:
            found.update({slot: _of_values(spec, operand, part) for slot, part in value_slots(operand).items()})
    return found


def value_slots(packed: Operand) -> dict[str, Operand]:
    """The arrays of values of a packed operand, by name, each with the operand that its part is.

    >>> import torch
    >>> ell, coo = "(i, j) -> (i : dense, j : packed<4>)", "(i, j) -> (i : compressed<unique=false>, j : singleton)"
    >>> both = f"#lacis.sum<ell = #lacis.format<{ell}> when fits, rest = #lacis.format<{coo}>>"
    >>> list(value_slots(Operand("w", ("i", "j"), torch.float32, both)))
    ['ell.values', 'rest.values']
    """
    format = Format.parse(packed.format)
    if not isinstance(format, Sum):
        return {VALUES: packed}
    return {f"{name}.{VALUES}": dataclasses.replace(packed, format=part.text) for name, part in format.parts.items()}


def _of_dense(spec: KernelSpec, operand: Operand) -> KernelSpec:
    """The other operands, and in this one's place what arrives for the output."""
    if not spec.sampled:
        swapped = tuple(spec.output if other is operand else other for other in spec.operands)
    else:  # what arrives stands in the place of the pattern
        swapped = tuple(_arriving(spec, other) for other in spec.operands if other is not operand)
    known = {letter for other in swapped for letter in other.indices}
    kept = tuple(letter for letter in operand.indices if letter in known)
    return _kernel(spec, swapped, dataclasses.replace(operand, indices=kept))


def _arriving(spec: KernelSpec, other: Operand) -> Operand:
    return other if other.format is None else dataclasses.replace(other, dtype=spec.dtype)


def _of_values(spec: KernelSpec, packed: Operand, part: Operand) -> KernelSpec:
    """The product of all other operands and of what arrives, where the part has entries."""
    pattern = dataclasses.replace(part, dtype=None)
    operands = tuple(pattern if other is packed else other for other in spec.operands)
    if spec.sampled:  # what arrives multiplies it afterwards, and is no narrower than the output
        return _kernel(spec, operands, dataclasses.replace(part, dtype=spec.dtype))
    return _kernel(spec, (*operands, spec.output), part)


def _kernel(spec: KernelSpec, operands, output: Operand) -> KernelSpec:
    name = f"{spec.name.partition('_grad_')[0]}_grad_{output.name}"
    used = {letter for operand in operands for letter in operand.indices}
    classes = tuple(pair for pair in spec.divisible if pair[0] in used)
    changes = {"name": name, "operands": operands, "output": output, "divisible": classes, "steps": ()}
    return dataclasses.replace(spec, **changes, scale=None, bias=None, activation=None, residual=None)

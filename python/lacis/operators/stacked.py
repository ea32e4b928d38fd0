# SPDX-License-Identifier: Apache-2.0
"""A stack of matrices that its module's forward reads one at a time, as the experts of a mixture: `x @ self.w[e].T`.

The module stays; its parameter [experts, rows, columns] becomes one packed weight, of which a matrix is a stretch.
"""

from __future__ import annotations

import dataclasses
import math

import torch

from ..formats import Csr, Format
from ..formats.widths import without_widths
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.structure import Structure
from .embedding import whole_rows
from .operator import Operator, operator


@operator
class Stacked(Operator):
    """`F.linear(x, w[e])`: `y[b, i] = sum_j w[e, i, j] * x[b, j]`, one kernel for all matrices of the stack."""

    name = "stacked"
    statement = None
    rank = 2
    in_place = True
    runs = "stacked"
    stacks = True
    expression = "ij,bj->bi"

    def matches(self, module):
        return False  # capture looks into the forward of what no other operator matches

    def matrix(self, shape):
        """All rows of all matrices below one another."""
        return math.prod(shape[:-1]), shape[-1]

    def refuses_format(self, format):
        if isinstance(format, Format) and whole_rows(of_one(format)):
            return None
        return f"a matrix of a stack is a stretch of rows, which '{format}' has not; take Csr, Ell, Bsr, BlockedEll"

    def refuses_shape(self, shape, format):
        block = of_one(format).tile[:1]
        if not block or shape[1] % block[0] == 0 or format.rank == 3:
            return None
        return (
            f"blocks of {block[0]} rows reach over the edge of matrices of {shape[1]} rows; take a block size that "
            "divides them"
        )

    def direct(self, weight, module, x, number):
        one = slice_of(weight, int(number))
        flat = x.reshape(-1, x.shape[-1])
        y = weight._products.recipe.einsum(self.expression, one, flat, target=weight._products.recipe.target)
        return y.reshape(*x.shape[:-1], y.shape[-1])

    def eager(self, weight, module, x, number):
        return x @ self.turned(weight[int(number)])

    def turned(self, matrix):
        """What the input is multiplied with."""
        return matrix.T


@operator
class TransposedStacked(Stacked):
    """`x @ w[e]`: `y[b, i] = sum_j w[e, j, i] * x[b, j]`."""

    name = "transposed_stacked"
    runs = "transposed_stacked"
    expression = "ji,bj->bi"

    def turned(self, matrix):
        return matrix


def of_one(format: Format) -> Format:
    """The format of each matrix of a stack: that of the matrix of all rows, or what a dense first axis has below it.

    >>> print(of_one(Format.parse("(i, j, k) -> (i : dense, j : dense, k : compressed)")))
    #lacis.format<(i, j) -> (i : dense, j : compressed)>
    """
    if not isinstance(format, Format) or format.rank != 3 or format.bindings:
        return format
    first, *rest = format.levels
    is_dense = without_widths(format).levels[0] == Csr().levels[0]
    if not is_dense or any(digit.axis == 0 for each in rest for digit in each.digits):
        return format
    down = lambda level: dataclasses.replace(
        level, digits=tuple(dataclasses.replace(digit, axis=digit.axis - 1) for digit in level.digits)
    )
    return Format.of([down(level) for level in rest])


def slice_of(weight, number: int) -> PackedTensor:
    """One matrix of a packed stack, over stretches of its arrays; differentiable in its values."""
    known, part = weight._products.slices, weight._parts()[0]
    now = part.revision, weight.device
    if known.get("of") != now:
        known.clear()
        known.update(of=now, first=_first_slots(weight, part))
    first = known["first"]
    if number not in known:
        known[number] = _pattern(weight, part, number, first)
    low, high = first[number], first[number + 1]
    return PackedTensor(known[number], {"": part.values[low:high]})


def _first_slots(weight, part) -> list[int]:
    """The position at which each matrix begins, and the end; one wait for the device, for each pattern."""
    count, groups = weight.shape[0], _groups(weight)
    level = len(part.format.prefix) - 1
    if f"pos{level}" in part.format.buffers:
        return part.array(f"pos{level}")[::groups].tolist()
    return [number * (part.values.shape[0] // max(count, 1)) for number in range(count + 1)]


def _groups(weight) -> int:
    """How many rows, or rows of blocks, a matrix has."""
    block = of_one(weight.format).tile
    return max(-(-weight.shape[1] // (block[0] if block else 1)), 1)


def _pattern(weight, part, number: int, first: list[int]) -> Pattern:
    one, groups = of_one(weight.format), _groups(weight)
    low, high, level = first[number], first[number + 1], len(part.format.prefix) - 1
    rows = slice(number * groups, (number + 1) * groups)
    position = part.array(f"pos{level}") if f"pos{level}" in part.format.buffers else None
    if position is None:
        buffers = {"crd1": part.array(f"crd{level}")[rows].clone()}
    else:
        position = position[rows.start : rows.stop + 1] - low
        buffers = {"pos1": position, "crd1": part.array(f"crd{level}")[low:high].clone()}
    valid = None if part.valid is None else part.valid[low:high].clone()
    structure = Structure(one, tuple(weight.shape[1:]), buffers, high - low, part.values.device, valid)
    return Pattern(one, {"": structure})


def require_number(weight, index) -> int:
    """The number of a matrix of the stack. Raises `IndexError` and `TypeError` as torch does, in our words."""
    if isinstance(index, torch.Tensor) and (
        index.numel() != 1 or index.is_floating_point() or index.dtype == torch.bool
    ):
        raise TypeError(
            f"a packed stack {list(weight.shape)} is read one matrix at a time, w[3], and the index has shape "
            f"{list(index.shape)}; models of transformers do so with config._experts_implementation = 'eager' or "
            "'grouped_mm'"
        )
    if not isinstance(index, torch.Tensor) and (isinstance(index, bool) or not hasattr(index, "__index__")):
        raise TypeError(f"a packed stack {list(weight.shape)} is read one matrix at a time, w[3], not with {index!r}")
    number, count = int(index), weight.shape[0]
    if not -count <= number < count:
        raise IndexError(f"index {number} is not in a packed stack of {count} matrices")
    return number % count

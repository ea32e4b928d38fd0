# SPDX-License-Identifier: Apache-2.0
"""Products with the matrices of a packed stack: `F.linear(x, w[e])`, `torch.bmm(x, w)`, `F.grouped_mm`."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..operators.stacked import require_number, slice_of
from .uses import FUNCTIONS, Turned, Used


class Slice(Used):
    """One matrix of a packed stack: what `weight[3]` answers; products with it run on its entries."""

    def __init__(self, stack, index):
        self.stack, self.number, self._products = stack, require_number(stack, index), stack._products

    @property
    def shape(self) -> torch.Size:
        return self.stack.shape[1:]

    @property
    def dtype(self) -> torch.dtype:
        return self.stack.dtype

    @property
    def device(self) -> torch.device:
        return self.stack.device

    @property
    def ndim(self) -> int:
        return 2

    @property
    def T(self) -> Turned:
        return Turned(self)

    def packed(self):
        """The matrix as a packed tensor, over the stack's arrays."""
        return slice_of(self.stack, self.number)

    def to_dense(self) -> torch.Tensor:
        """The strided matrix; differentiable in the values."""
        return self.packed().to_dense()

    def product(self, x: torch.Tensor, operator: str = "linear") -> torch.Tensor:
        """`x @ w.T`, with "transposed_linear" `x @ w`."""
        name = {"linear": "stacked", "transposed_linear": "transposed_stacked"}[operator]
        return self._products.layer(self.stack, name)(x, torch.tensor(self.number))


class TurnedStack(Used):
    """A packed stack whose matrices are transposed, as `F.grouped_mm` takes it."""

    def __init__(self, weight):
        self.weight, self.dtype, self.device, self._products = weight, weight.dtype, weight.device, weight._products
        self.shape = torch.Size((weight.shape[0], weight.shape[2], weight.shape[1]))

    @property
    def T(self):
        return self.weight

    def product(self, x, operator="linear"):
        return self.weight.product(x, operator)  # which says that it is no matrix


def batched(x: torch.Tensor, stack) -> torch.Tensor:
    """`torch.bmm(x, stack)`: x is [experts, tokens, columns or rows]."""
    weight, operator = _unturned(stack)
    if x.ndim != 3 or len(x) != weight.shape[0]:
        raise DataError(f"a batch {list(x.shape)} does not fit a packed stack {list(weight.shape)}")
    return torch.stack([weight[n].product(each, operator) for n, each in enumerate(x)])


def grouped(mat_a, mat_b, offs=None, bias=None, out_dtype=None) -> torch.Tensor:
    """`F.grouped_mm`: the rows of `mat_a` up to `offs[e]` are multiplied with matrix e of the stack."""
    weight, operator = _unturned(mat_b)
    if offs is None or mat_a.ndim != 2:
        raise DataError("grouped_mm with a packed stack takes rows [tokens, features], and the ends of groups (offs)")
    ends = [0, *offs.tolist()]
    pieces = [weight[n].product(mat_a[low:high], operator) for n, (low, high) in enumerate(zip(ends, ends[1:]))]
    rest = mat_a.new_zeros(len(mat_a) - ends[-1], pieces[0].shape[-1])
    y = torch.cat([*pieces, rest.to(pieces[0].dtype)])
    y = y if bias is None else y + bias
    return y if out_dtype is None else y.to(out_dtype)


def _unturned(stack):
    """The packed stack, and the operator of `x @ stack[e]`, where it may be transposed."""
    return (stack.weight, "linear") if isinstance(stack, TurnedStack) else (stack, "transposed_linear")


FUNCTIONS.update(bmm=batched, _grouped_mm=grouped)

# SPDX-License-Identifier: Apache-2.0
"""A packed activation: a tensor like any other to the model, whose products run on its entries."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_map

from ..errors import ScheduleError
from ..packing import PackedTensor
from .autocast import outside

_aten = torch.ops.aten


class PackedActivation(torch.Tensor):
    """What an edge of the model hands on: the shape and dtype of a tensor, the storage of a packed matrix.

    `packed` has the tensor's leading axes as one; it is [b, j], and seen as [j, b] where `flipped`. A product with a
    dense matrix runs on it, changes of the leading axes keep it, and all else sees the dense tensor with zeros.
    `edge` runs products, see `lacis.runtime.edges`.
    """

    @staticmethod
    def __new__(cls, packed: PackedTensor, shape, edge, flipped: bool = False):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=packed.dtype, device=packed.device)

    def __init__(self, packed: PackedTensor, shape, edge, flipped: bool = False):
        self.packed = packed
        self.edge = edge
        self.flipped = flipped

    def dense(self) -> torch.Tensor:
        """The tensor with zeros where nothing is stored; differentiable in the values."""
        dense = self.packed.to_dense()
        return dense.T if self.flipped else dense.reshape(self.shape)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _called(_PRODUCTS, func, args, kwargs or {}, lambda: _watched(func, args, kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with torch.no_grad():  # autograd stands above
            return _called(_KERNELS, func, args, kwargs or {}, lambda: _densely(func, args, kwargs or {}))

    def __repr__(self, **_):
        return f"PackedActivation({self.edge.name}, {list(self.shape)}, {self.packed})"


def _called(known, func, args, kwargs, otherwise):
    """By the function that knows packed operands, where there is one and it takes these."""
    if getattr(func, "namespace", None) == "lacis":
        _refuse(args, kwargs, "its product has another packed operand, one may be; leave one of them dense")
    run = known.get(func)
    found = NotImplemented if run is None else run(*args, **kwargs)
    return otherwise() if found is NotImplemented else found


def _below(func, args, kwargs):
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def _watched(func, args, kwargs):
    """`_below`; a product that ran none of its packed operands' entries is noted at their edges."""
    name = getattr(func, "__name__", "").strip("_")
    if name not in _NAMES_OF_PRODUCTS:
        return _below(func, args, kwargs)
    before = [(each.edge, each.edge.products) for each in _packed_among(args, kwargs)]
    result = _below(func, args, kwargs)
    for edge, products in before:
        if edge.products == products:
            edge.note_dense(name)
    return result


def _packed_among(args, kwargs) -> list[PackedActivation]:
    found: list[PackedActivation] = []
    tree_map(lambda each: found.append(each) if isinstance(each, PackedActivation) else None, (args, kwargs))
    return found


def _densely(func, args, kwargs):
    for argument, value in zip(func._schema.arguments, args):
        if argument.alias_info is not None and argument.alias_info.is_write:
            _refuse([value], {}, f"'{func}' changes it in place, which would be lost; take the one that answers anew")
    dense = lambda each: each.dense() if isinstance(each, PackedActivation) else each
    return func(*tree_map(dense, args), **tree_map(dense, kwargs))


def _refuse(args, kwargs, reason: str) -> None:
    """Raise for the packed activation among the arguments; nothing where there is none."""
    found = _packed_among(args, kwargs)
    if found:
        raise ScheduleError(f"'{found[0].edge.name}' is packed: {reason}", location=found[0].edge.location)


def _product(a, b, bias=None):
    """`a @ b` with one packed operand; NotImplemented where the other is no matrix."""
    packed, other = (a, b) if isinstance(a, PackedActivation) else (b, a)
    if isinstance(other, PackedActivation):
        _refuse([other], {}, f"it meets '{packed.edge.name}' in a product, one may be; leave one of them dense")
    if not isinstance(other, torch.Tensor) or other.ndim != 2 or b.ndim != 2 or a.shape[-1] != b.shape[0]:
        return NotImplemented  # torch says what is wrong, if anything is
    if packed is a:
        expression = "bj,bi->ji" if a.flipped else "bj,ji->bi"
        return _run(packed, expression, other, bias).reshape(*a.shape[:-1], b.shape[1])
    return _run(packed, "bj,ij->ib" if b.flipped else "bj,ib->ij", other, bias)


def _linear(input, weight, bias=None):
    mine = isinstance(input, PackedActivation) and not input.flipped
    if not mine or weight.ndim != 2 or input.shape[-1:] != weight.shape[1:]:
        return NotImplemented
    return _run(input, "bj,ij->bi", weight, bias).reshape(*input.shape[:-1], weight.shape[0])


def _addmm(input, mat1, mat2, *, beta=1, alpha=1):
    mine = isinstance(mat1, PackedActivation) and not mat1.flipped
    if beta != 1 or alpha != 1 or not mine or input.shape != mat2.shape[1:]:
        return NotImplemented
    return _product(mat1, mat2, input)


def _run(packed: PackedActivation, expression: str, other, bias):
    """The product on the packed matrix, in the dtype of an autocast region where there is one."""
    operands, device = [packed.packed, other, bias], packed.device.type
    if torch.is_autocast_enabled(device) and packed.dtype != torch.float64:
        dtype = torch.get_autocast_dtype(device)
        operands = [each if each is None else each.to(dtype) for each in operands]
    with outside(device):
        return packed.edge.product(expression, *operands[:2], bias=operands[2])


def _view(x, *shape):
    """Leading axes are one already; the last one must stay."""
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    known = math.prod(size for size in shape if size != -1)
    shape = tuple(size if size != -1 else x.numel() // known if known else 0 for size in shape)
    if x.flipped or shape[-1:] != x.shape[-1:] or math.prod(shape) != x.numel():
        return NotImplemented
    return PackedActivation(x.packed, shape, x.edge)


def _transpose(x, *dims):
    if x.ndim != 2 or (dims and {dim % 2 for dim in dims} != {0, 1}):
        return NotImplemented
    return PackedActivation(x.packed, (x.shape[1], x.shape[0]), x.edge, not x.flipped)


def _sum(x, dims=None, keepdim=False, *, dtype=None):
    """Over `b`, as the gradient of a bias is."""
    if dims is None or list(dims) not in ([0], [-2]) or x.ndim != 2 or x.flipped or dtype not in (None, x.dtype):
        return NotImplemented
    found = x.edge.product("bj->j", x.packed)
    return found[None] if keepdim else found


_NAMES_OF_PRODUCTS = {
    "addbmm", "addmm", "addmv", "baddbmm", "bilinear", "bmm", "chain_matmul", "conv1d", "conv2d", "conv3d", "dot",
    "einsum", "inner", "linear", "matmul", "mm", "multi_head_attention_forward", "mv", "rmatmul",
    "scaled_dot_product_attention", "tensordot", "vdot",
}  # fmt: skip

_PRODUCTS = {
    F.linear: _linear,
    torch.addmm: _addmm,
    torch.matmul: _product, torch.Tensor.matmul: _product, torch.Tensor.__matmul__: _product,
    torch.Tensor.__rmatmul__: lambda b, a: _product(a, b),
    torch.mm: _product, torch.Tensor.mm: _product,
}  # fmt: skip

_KERNELS = {
    _aten.addmm.default: _addmm,
    _aten.mm.default: _product,
    _aten.view.default: _view, _aten._unsafe_view.default: _view,
    _aten.t.default: _transpose, _aten.transpose.int: _transpose,
    _aten.sum.dim_IntList: _sum,
}  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Products with a packed weight that a model writes out: `F.linear(x, w)`, `x @ w.T`, `w @ x`, attention's projections.

A packed weight is no tensor, and torch asks it what a function of torch does with it (`__torch_function__`).
"""

from __future__ import annotations

import dataclasses
import types

import torch
import torch.nn.functional as F

from ..errors import DataError
from ..operators import OPERATORS
from ..packing import PackedTensor


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What products with a weight are made of: `make` is `SparseModule`, the rest its arguments after the weight."""

    make: object
    target: str
    loader: object
    known: tuple
    einsum: object = None  # `lacis.einsum`, for what is a part of the weight


class _Layer(torch.nn.Module):
    """A layer without bias, for a product that has none; its weight is the packed one."""

    def __init__(self, rows: int, columns: int):
        super().__init__()
        self.in_features, self.out_features = columns, rows
        self.register_parameter("bias", None)


class Products:
    """Layers that run a packed weight's products, by operator; made when first asked for, and where it was moved."""

    def __init__(self, recipe: Recipe, stacks: bool = False):
        self.recipe, self.stacks = recipe, stacks
        self.slices: dict = {}  # patterns of the matrices of a stack
        self.knows_order = False  # a build has seen that `w @ x` is not written anywhere
        self._made: dict[str, tuple] = {}
        self._collector = None  # see `SparseModule.collector`

    def have(self, collector) -> None:
        """Who asks for the gradient of all places, of what is made now and later."""
        self._collector = collector
        for layer in self.made:
            layer.collector = collector

    def layer(self, weight, operator: str):
        if (len(weight.shape) != 2 and not self.stacks) or OPERATORS[operator].stacks != self.stacks:
            raise DataError(
                f"a packed weight {list(weight.shape)} is no matrix: only matrices have products written out"
            )
        now = weight.dtype, weight.device
        was, layer = self._made.get(operator, (None, None))
        if was != now:
            recipe = self.recipe
            given = "eager" if self.stacks else recipe.target, recipe.loader, *recipe.known
            layer = recipe.make(_Layer(*weight.shape[-2:]), operator, weight, *given)
            layer.collector = self._collector
            self._made[operator] = now, layer
        return layer

    def layers(self, weight) -> list:
        """Those of all products that a model can write out."""
        if len(weight.shape) != 2 and not self.stacks:
            return []
        served = [each for each in OPERATORS.values() if each.in_place and each.stacks == self.stacks]
        return [self.layer(weight, operator.runs) for operator in served]

    @property
    def made(self) -> list:
        """Those that there are, with a kernel or without."""
        return [layer for _, layer in self._made.values()]

    @property
    def used(self) -> list:
        """Those that have run, or were compiled by a build."""
        return [layer for layer in self.made if layer.is_bound]

    def __getstate__(self):
        return {**self.__dict__, "_made": {}, "slices": {}, "_collector": None}  # copies and files make their own


class Used:
    """Base of packed weights: products that a model writes out run on the entries."""

    _products: Products | None = None  # set by a build

    def product(self, x: torch.Tensor, operator: str = "linear") -> torch.Tensor:
        """`x @ w.T`, with "transposed_linear" `x @ w`. Raises `DataError` for a weight of no built model."""
        if self._products is None:
            raise DataError("this packed weight is of no built model, so it has no kernel; lacis.einsum takes packed()")
        layer = self._products.layer(self, operator)
        if torch.compiler.is_dynamo_compiling() and not layer.is_bound and layer.target != "eager":
            raise RuntimeError(
                "a product with a layer's weight has no kernel yet: call the model once, then compile it"
            )
        return layer(x)

    def t(self) -> Turned:
        return self.T

    @property
    def mT(self) -> Turned:
        return self.T

    def transpose(self, dim0: int, dim1: int) -> Turned:
        """The transpose of a matrix, or of each matrix of a stack."""
        rank = len(self.shape)
        if {dim0 % rank, dim1 % rank} != {rank - 2, rank - 1} or rank > (3 if self.stacks else 2):
            raise DataError(f"transpose({dim0}, {dim1}) of a packed weight {list(self.shape)}: the axes are 0 and 1")
        return self.T

    @property
    def stacks(self) -> bool:
        """Is it a stack of matrices, of which `w[3]` is one?"""
        return self._products is not None and self._products.stacks

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


class Turned(PackedTensor):
    """The transpose of a layer's packed weight, whose products run the layer's kernels."""

    def __init__(self, weight):
        self.weight = weight  # the rest where it is asked for, which products do not

    def __getattr__(self, name: str):
        if name not in ("pattern", "_values", "_tiles"):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        packed = self.weight.packed().T
        super().__init__(packed.pattern, packed.values_by_part)
        return self.__dict__[name]

    def __matmul__(self, x):
        return _times(self, x)

    def __rmatmul__(self, x):
        return _times(x, self)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


def _run(func, args, kwargs):
    name = getattr(func, "__name__", str(func))
    if name not in FUNCTIONS:
        raise DataError(
            f"a packed weight has products alone ('F.linear', '@', 'torch.addmm'), and the model asks for '{name}'; "
            "weight.to_dense() has the dense one, and lacis.densify(model) gives it back"
        )
    return FUNCTIONS[name](*args, **kwargs)


def _matmul(a, b):
    weight = next(each for each in (a, b) if isinstance(each, (Used, Turned)))
    products = (weight.weight if isinstance(weight, Turned) else weight)._products
    if torch.compiler.is_dynamo_compiling() and not (products is not None and products.knows_order):
        raise RuntimeError(  # which torch.compile can report, unlike our own
            "torch.compile does not tell 'x @ w' from 'w @ x' where w is a layer's packed weight: "
            "write F.linear(x, w), or call the layer"
        )
    return _times(a, b)


def _linear(input, weight, bias=None):
    y = _times(input, _transposed(weight))
    return y if bias is None else y + bias


def _transposed(weight):
    if isinstance(weight, Turned):
        return weight.weight
    return weight.T if isinstance(weight, Used) else weight.mT


def _times(a, b):
    """`a @ b`, of which one is packed."""
    if isinstance(a, (Used, Turned)):
        if isinstance(b, (Used, PackedTensor)):
            raise DataError(
                "'@' with two packed operands has no code; one may be packed, take .to_dense() of the other"
            )
        if b.ndim < 2:
            return _times(b, _transposed(a))
        return _times(b.mT, _transposed(a)).mT
    weight = b.weight if isinstance(b, Turned) else b
    if weight._products is None:
        return a @ (weight.packed().T if isinstance(b, Turned) else weight.packed())
    return weight.product(a, "linear" if isinstance(b, Turned) else "transposed_linear")


def _addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return beta * input + alpha * _times(mat1, mat2)


def _project(query, key, value, weight, bias=None):
    """The three projections of attention, one product for each different input."""
    size, found = query.size(-1), {}
    for x in (query, key, value):
        if id(x) not in found:
            found[id(x)] = F.linear(x, weight, bias)
    return [found[id(x)][..., n * size : (n + 1) * size].contiguous() for n, x in enumerate((query, key, value))]


def _same_with(function, **names):
    """A function of torch whose names mean something else."""
    return types.FunctionType(function.__code__, {**vars(F), **names}, function.__name__, function.__defaults__)


# torch's own function on projections that are products of packed weights: it does not ask again whose they are.
_attention = _same_with(
    F.multi_head_attention_forward, has_torch_function=lambda tensors: False, _in_projection_packed=_project
)


FUNCTIONS = {  # of torch, by name, that a packed weight answers
    "linear": _linear,
    "matmul": _matmul,
    "mm": _times,
    "__matmul__": _matmul,
    "__rmatmul__": lambda b, a: _times(a, b),
    "addmm": _addmm,
    "t": _transposed,
    "transpose": lambda weight, dim0, dim1: weight.transpose(dim0, dim1),
    "multi_head_attention_forward": _attention,
}

# SPDX-License-Identifier: Apache-2.0
"""The names of torchao.sparsity: linear layers that are 2:4 while they train, and weights that are sparse for good."""

from __future__ import annotations

import dataclasses

import torch

from ..errors import DataError, ScheduleError
from ..formats import Bsr, Ell
from ..packing import PackedTensor, pack
from ..patterns.seen import Seen
from ..runtime.einsum import einsum
from ..training import create_schedule
from ..runtime.swap import as_a_whole, put
from ..sparsifiers import NM

__all__ = [
    "BlockSparseWeightConfig",
    "SemiSparseActivationLinear",
    "SemiSparseLinear",
    "SemiSparseWeightConfig",
    "largest_of_both_ways",
    "sparsify_",
    "swap_linear_with_semi_sparse_linear",
    "swap_semi_sparse_linear_with_linear",
]


def largest_of_both_ways(tensor: torch.Tensor) -> torch.Tensor:
    """The bool mask of a matrix that keeps at most 2 of 4 neighbours in each row and in each column of each 4×4 tile.

    Elements of a tile are taken from the largest (by value, signs count) downwards while their row and column have
    room; of equal ones the first. NaN counts as the largest. A tile at the edge has the elements that it has.

    >>> largest_of_both_ways(torch.arange(16.0).reshape(4, 4)).int().tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]

    Raises `DataError` for what is no matrix. One mask for both products of training: Hubara et al., 2021 (greedy).
    """
    return NM(2, 4, both=True, rank="value")(tensor)


def _packed(tensor: torch.Tensor) -> PackedTensor:
    """A matrix with the entries of the mask, in rows of one width, so that one kernel serves every pattern."""
    return pack(tensor.detach(), Ell(width=-(-tensor.shape[1] // 4) * 2), mask=largest_of_both_ways(tensor))


class _OnWeight(torch.autograd.Function):
    """`x @ w.T` on the sparsified weight; the gradient of the weight is dense: the mask is passed straight through."""

    @staticmethod
    def forward(ctx, x, weight, packed, target):
        ctx.save_for_backward(x)
        ctx.packed, ctx.target = packed, target
        return einsum("ij,bj->bi", packed, x, target=target)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        of_x = einsum("ij,bi->bj", ctx.packed, grad, target=ctx.target) if ctx.needs_input_grad[0] else None
        return of_x, grad.T @ x if ctx.needs_input_grad[1] else None, None, None


class _OnInput(torch.autograd.Function):
    """`x @ w.T` on the sparsified input, whose gradient is dense."""

    @staticmethod
    def forward(ctx, x, weight, packed, target):
        ctx.save_for_backward(weight)
        ctx.packed, ctx.target = packed, target
        return einsum("bj,ij->bi", packed, weight, target=target)

    @staticmethod
    def backward(ctx, grad):
        (weight,) = ctx.saved_tensors
        of_w = einsum("bj,bi->ij", ctx.packed, grad, target=ctx.target) if ctx.needs_input_grad[1] else None
        return grad @ weight if ctx.needs_input_grad[0] else None, of_w, None, None


class _SemiSparse(torch.nn.Linear):
    """A linear layer whose Parameters are dense, and whose product runs on what `largest_of_both_ways` keeps.

    `target` of the class or the object says where, as in `lacis.create_schedule`. Under `torch.compile` the product is
    a break of the graph.
    """

    target = "auto"

    @classmethod
    def from_dense(cls, linear: torch.nn.Linear):
        """The layer with the same Parameters."""
        return _with_parameters_of(linear, cls)

    @classmethod
    def to_dense(cls, semi_sparse_linear) -> torch.nn.Linear:
        """The dense layer with the same Parameters."""
        return _with_parameters_of(semi_sparse_linear, torch.nn.Linear)

    def forward(self, x):
        weight, flat = self.weight, x.reshape(-1, x.shape[-1])
        device = flat.device.type
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
            flat, weight = flat.to(dtype), weight.to(dtype)
        y = self._product(flat, weight).reshape(*x.shape[:-1], self.out_features)
        return y if self.bias is None else y + self.bias.to(y.dtype)


class SemiSparseLinear(_SemiSparse):
    """2:4 in the weight, chosen anew in each forward pass; trained straight through the mask.

    >>> layer = SemiSparseLinear.from_dense(torch.nn.Linear(8, 4))
    >>> layer.target = "eager"
    >>> layer(torch.ones(3, 8)).sum().backward()
    >>> int((layer.weight.grad != 0).sum())
    32
    """

    _kept: tuple[Seen, PackedTensor] | None = None  # while nothing trains

    @torch.compiler.disable  # what is kept follows from numbers, which no graph looks at
    def _product(self, x, weight):
        return _OnWeight.apply(x, weight, self._of(weight), self.target)

    def _of(self, weight) -> PackedTensor:
        if torch.is_grad_enabled() or weight.is_inference() or torch.compiler.is_compiling():
            return _packed(weight)
        if self._kept is None or not self._kept[0].still(weight):
            self._kept = Seen(weight), _packed(weight)
        return self._kept[1]

    def __getstate__(self):
        return {**self.__dict__, "_kept": None}


class SemiSparseActivationLinear(_SemiSparse):
    """2:4 in the input, its leading axes being rows, chosen in each forward pass; straight through in the backward.

    >>> layer = SemiSparseActivationLinear.from_dense(torch.nn.Linear(4, 1, bias=False))
    >>> layer.target = "eager"
    >>> _ = layer.weight.data.fill_(1)
    >>> layer(torch.tensor([[1.0, 2.0, 3.0, 4.0]])).item()
    7.0
    """

    @torch.compiler.disable
    def _product(self, x, weight):
        return _OnInput.apply(x, weight, _packed(x), self.target)


def _with_parameters_of(linear, cls):
    made = cls(1, 1, bias=False, device="meta")
    made.in_features, made.out_features = linear.in_features, linear.out_features
    made.weight, made.bias = linear.weight, linear.bias
    return made.train(linear.training)


def swap_linear_with_semi_sparse_linear(model, config: dict[str, type], current: str = "") -> None:
    """Put layers of the classes that `config` names by path in place of `nn.Linear` modules; Parameters stay the same.

    `current` is the path of `model`, which those in `config` begin with. Raises `ScheduleError` for a path that is no
    `nn.Linear` of the model and for other classes, before anything is changed.

    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 8))
    >>> swap_linear_with_semi_sparse_linear(model, {"0": SemiSparseLinear})
    >>> model
    Sequential(
      (0): SemiSparseLinear(in_features=8, out_features=8, bias=True)
    )
    """
    start = f"{current}." if current else ""
    linears = {f"{start}{n}": m for n, m in model.named_modules(remove_duplicate=False) if n}
    made: dict[tuple[int, type], torch.nn.Module] = {}
    for name, cls in config.items():
        if not isinstance(linears.get(name), torch.nn.Linear):
            known = ", ".join(repr(n) for n, m in linears.items() if isinstance(m, torch.nn.Linear))
            raise ScheduleError(f"'{name}' is no Linear of the model; it has {known or 'none'}")
        if not isinstance(cls, type) or not issubclass(cls, _SemiSparse):
            raise ScheduleError(f"'{name}': SemiSparseLinear or SemiSparseActivationLinear is expected, not {cls!r}")
        made.setdefault((id(linears[name]), cls), cls.from_dense(linears[name]))
    swapped = {name.removeprefix(start): made[id(linears[name]), cls] for name, cls in config.items()}
    _put_all(model, swapped)


def swap_semi_sparse_linear_with_linear(model, current: str = "") -> None:
    """Put `nn.Linear` in place of all semi-sparse layers, with their Parameters, which are dense."""
    found = {n: m for n, m in model.named_modules(remove_duplicate=False) if n and isinstance(m, _SemiSparse)}
    dense = {id(module): module.to_dense(module) for module in found.values()}
    _put_all(model, {name: dense[id(module)] for name, module in found.items()})


def _put_all(model, modules: dict[str, torch.nn.Module]) -> None:
    def change(undo):
        for name, module in modules.items():
            put(model, name, module, undo)

    as_a_whole(change)


@dataclasses.dataclass(frozen=True)
class SemiSparseWeightConfig:
    """Weights that are 2:4 already: of 4 neighbours in a row at most 2 are not zero. Rows are stored at one width."""

    def _schedule(self, handle, weight) -> None:
        rows, columns = weight.shape
        if columns % 4:
            raise DataError(f"'{handle.name}' has {columns} columns, 2:4 needs a multiple of 4")
        groups = (weight.detach() != 0).unflatten(1, (-1, 4)).sum(2)
        if bool((groups > 2).any()):
            row, group = (groups > 2).nonzero()[0].tolist()
            raise DataError(
                f"'{handle.name}' is not 2:4: row {row} has {int(groups[row, group])} non-zeros in columns {4 * group} "
                f"to {4 * group + 3}; prune it first, s['{handle.name}'].sparsify(lacis.NM(2, 4))"
            )
        handle.set_format(Ell(width=columns // 2))


@dataclasses.dataclass(frozen=True)
class BlockSparseWeightConfig:
    """Blocks of `blocksize` on both axes; those that hold a non-zero are stored."""

    blocksize: int = 64

    def _schedule(self, handle, weight) -> None:
        handle.block(self.blocksize, self.blocksize).set_format(Bsr)


def sparsify_(model, config, filter_fn=None, target: str = "auto"):
    """Store the weights of linear layers sparse, in place, as they are now; answers the model.

    `config` is a `SemiSparseWeightConfig` or `BlockSparseWeightConfig`; `filter_fn(module, path)` chooses among all
    modules, by default every `nn.Linear`. The values train; `lacis.densify(model)` is the way back. Raises
    `ScheduleError` where no module is chosen, or one that is no `nn.Linear`, and `DataError` for a weight that is not
    2:4; the model is as before then.

    >>> model = torch.nn.Sequential(torch.nn.Linear(128, 128))
    >>> _ = model[0].weight.data[:64].zero_()
    >>> sparsify_(model, BlockSparseWeightConfig(64), target="eager")[0].weight.values.shape
    torch.Size([2, 64, 64])
    """
    if not isinstance(config, (SemiSparseWeightConfig, BlockSparseWeightConfig)):
        raise ScheduleError(f"sparsify_: no configuration {config!r}; take SemiSparseWeightConfig()")
    chosen = filter_fn or (lambda module, path: type(module) is torch.nn.Linear)
    found = {path: module for path, module in model.named_modules() if chosen(module, path)}
    if not found:
        raise ScheduleError("sparsify_: filter_fn chooses no module of the model")
    schedule = create_schedule(model, target=target)
    for path, module in found.items():
        if not isinstance(module, torch.nn.Linear):
            raise ScheduleError(f"sparsify_: '{path}' is a {type(module).__name__}, not a Linear")
        config._schedule(schedule[f"{path}.weight" if path else "weight"], module.weight)
    return schedule.build()

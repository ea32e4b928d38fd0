# SPDX-License-Identifier: Apache-2.0
"""Patterns and the transforms of `torch.func`: what follows from a pattern is made outside of them, for it outlives
them; but what follows from several patterns of the same sizes may be made by one of Lacis' own."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable

import torch
from torch.autograd import forward_ad

from ..errors import DataError

is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


def is_transformed() -> bool:
    """Does a transform of `torch.func` look into this eager call, or forward mode (`torch.autograd.forward_ad`)?"""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


class _Own(threading.local):
    maps = False


_own = _Own()


@contextlib.contextmanager
def outside_transforms(tensors, what: str):
    """Run the body as if no transform were active; raise `DataError` where the tensors themselves are in one.

    `torch.func.stack_module_state` stacks the patterns of several models, of which nothing can be made at once.
    """
    if _own.maps:  # all that is made is of one map's patterns, and ends with it
        yield
        return
    if any(map(is_wrapped, tensors)):
        raise DataError(
            f"{what} cannot be made of several patterns at once; run each model once with gradients, or call .train() "
            "of each, before torch.func.stack_module_state"
        )
    with torch._C._DisableFuncTorch():
        yield


def mapped(function: Callable, stacked: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors that `function` makes of each of several patterns, whose tensors are stacked along a first axis.

    All are made at once, by as many operations as are made for one.

    >>> mapped(lambda given: {"sum": given["a"].sum()}, {"a": torch.tensor([[1, 2], [3, 4]])})["sum"].tolist()
    [3, 7]
    """
    before, _own.maps = _own.maps, True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.searchsorted")  # that it copies a slice of stacked arrays
            return torch.vmap(function)(stacked)
    finally:
        _own.maps = before


class _Several(torch.autograd.Function):
    @staticmethod
    def forward(tensor, one, several):
        return one(tensor)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info, dims, tensor, one, several):
        return several(tensor.movedim(dims[0], 0)), 0


def one_or_several(tensor: torch.Tensor, one: Callable, several: Callable) -> torch.Tensor:
    """`one(tensor)`; in a map, `several` of all tensors along a first axis, whose answer has such an axis too."""
    return _Several.apply(tensor, one, several) if is_wrapped(tensor) else one(tensor)


def seen_as(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`tensor.view(dtype)`, also in a map, for which not every torch has a rule.

    >>> seen_as(torch.tensor([1.0]), torch.int32).tolist()
    [1065353216]
    """

    def seen(given):
        return given.view(dtype)

    is_traced = torch.compiler.is_compiling()  # which knows nothing of maps
    return seen(tensor) if is_traced else one_or_several(tensor, seen, seen)

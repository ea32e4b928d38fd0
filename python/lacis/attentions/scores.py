# SPDX-License-Identifier: Apache-2.0
"""What changes the scores of attention, entry by entry: functions, bias, key padding, masks, documents."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import torch

from ..errors import DataError
from .arguments import require_real


def at_entries(name: str, function: Callable, arguments: Sequence[torch.Tensor]) -> torch.Tensor:
    """A function of scalars, as flex_attention takes them, at every entry. Raises `DataError` with its own line.

    >>> at_entries("score", lambda s, b, h, i, j: s + i, [torch.zeros(2), *[torch.arange(2)] * 4])
    tensor([0., 1.])
    """
    if not arguments[0].numel():
        return arguments[0]
    try:
        found = torch.vmap(function)(*arguments)
        if not isinstance(found, torch.Tensor) or found.shape != arguments[0].shape:
            raise ValueError("it must answer one number or bool")
        return found
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        code = getattr(function, "__code__", None)
        where = {} if code is None else {"location": (code.co_filename, code.co_firstlineno)}
        raise DataError(
            f"{name}: the function cannot run at every entry, as torch.vmap runs it: {error}", **where
        ) from error


class Scores:
    """The changes, in their order: the function, the bias, key padding, then masks, whose entries get -infinity."""

    def __init__(self, lengths: tuple[int, int, int, int], score=None, masks=(), bias=None, key_padding=None):
        self.lengths, self.score, self.masks = lengths, score, list(masks)
        self.given_bias = bias
        self.bias = None if bias is None else _broadcast("bias", bias, lengths)
        self.key_padding = None if key_padding is None else self._checked(key_padding)
        self.adds_padding = key_padding is not None and self.key_padding.is_floating_point()  # else it masks

    @property
    def any(self) -> bool:
        return bool(self.masks) or any(x is not None for x in (self.score, self.bias, self.key_padding))

    def __call__(self, values: torch.Tensor, b, h, i, j) -> torch.Tensor:
        where, kept = (b, h, i, j), None
        if self.score is not None:
            values = at_entries("score", self.score, (values, *where)).to(values.dtype)
        if self.bias is not None:
            values = (values + self.bias[b, h, i, j]).to(values.dtype)
        if self.adds_padding:
            values = (values + self.key_padding[b, j]).to(values.dtype)
        elif self.key_padding is not None:
            kept = self.key_padding[b, j] != 0
        for mask in self.masks:
            found = at_entries("mask", mask, where)
            if found.numel() and found.dtype != torch.bool:
                raise DataError(f"mask: the function must answer bool, not {found.dtype}")
            kept = found if kept is None else kept & found
        return values if kept is None or not values.numel() else torch.where(kept, values, -math.inf)

    def _checked(self, padding) -> torch.Tensor:
        wanted = [self.lengths[0], self.lengths[3]]
        if not isinstance(padding, torch.Tensor) or list(padding.shape) != wanted:
            what = list(padding.shape) if isinstance(padding, torch.Tensor) else type(padding).__name__
            raise DataError(f"key_padding: a tensor [B, Sk] = {wanted} is needed, not {what}")
        require_real("key_padding", padding)
        return padding


def _broadcast(name: str, tensor, shape) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise DataError(f"{name}: a tensor is needed, not {type(tensor).__name__}")
    require_real(name, tensor)
    try:
        return tensor.expand(shape)
    except RuntimeError:
        raise DataError(f"{name}: {list(tensor.shape)} does not broadcast to [B, H, Sq, Sk] = {list(shape)}") from None


def window_sides(window) -> tuple[int, int]:
    """How many keys before and after a query its window has: the pair, or one number for both.

    >>> window_sides(2), window_sides([3, 0])
    ((2, 2), (3, 0))
    """
    sides = window if isinstance(window, (tuple, list)) else (window, window)
    try:
        left, right = (side if type(side) is int else _whole(side) for side in sides)
    except (TypeError, ValueError):
        left = right = -1
    if left < 0 or right < 0:
        raise DataError(f"attention: window is a whole number or a pair, 0 or more, not {window!r}")
    return left, right


def _whole(number) -> int:
    """What is a whole number in memory of the host."""
    if isinstance(number, torch.Tensor):
        raise TypeError("a tensor, whose number may lie on a device")
    return operator.index(number)


class Positions:
    """Where tokens are in their sequences, and `causal` and `window` as masks of them."""

    def __init__(self, starts_q=None, starts_k=None, lengths: tuple[int, int] = (0, 0)):
        """Starts are `cu_seqlens` of as many queries and keys; the same ones twice leave positions to coordinates."""
        self.are_coordinates = starts_q is starts_k
        if starts_q is not None:
            self.numbers_q, self.positions_q = _of_tokens(starts_q, lengths[0])
            numbers, self.positions_k = _of_tokens(starts_k, lengths[1])
            self.numbers_k = torch.where(numbers < 0, -2, numbers)  # tokens of no sequence see none of the others

    def same_sequence(self, b, h, i, j) -> torch.Tensor:
        """Are both tokens of one sequence?"""
        return self.numbers_q[i] == self.numbers_k[j]

    def causal(self, b, h, i, j) -> torch.Tensor:
        return j <= i if self.are_coordinates else self.positions_k[j] <= self.positions_q[i]

    def window(self, left: int, right: int) -> Callable:
        def mask(b, h, i, j):
            ahead = j - i if self.are_coordinates else self.positions_k[j] - self.positions_q[i]
            return (ahead >= -left) & (ahead <= right)

        return mask


def _of_tokens(starts: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The number of the sequence of each token, -1 of none, and where the token is in it.

    >>> _of_tokens(torch.tensor([0, 2, 2, 3]), 4)
    (tensor([ 0.,  0.,  2., -1.]), tensor([0., 1., 0., 0.]))
    """
    tokens = torch.arange(length, device=starts.device)
    number = torch.searchsorted(starts, tokens, right=True) - 1
    position = tokens - starts[number.clamp(0)]
    number = torch.where(number < len(starts) - 1, number, -1)
    # Kernels read floating point; nobody has to look whether float32 has whole numbers up to 2^24.
    dtype = torch.float32 if length <= 2**24 else torch.float64
    return number.to(dtype), position.to(dtype)


def sequence_starts(name: str, starts, length: int, device) -> torch.Tensor:
    """Checked `cu_seqlens`. Its values are looked at on a CPU alone, for a look waits for a device."""
    if not isinstance(starts, torch.Tensor) or starts.ndim != 1 or len(starts) < 1 or starts.is_floating_point():
        raise DataError(f"{name}: a tensor of integers [sequences + 1] is needed")
    if starts.device != device:
        raise DataError(f"{name} is on {starts.device}, q on {device}; move one of them")
    if device.type == "cpu" and (int(starts[0]) != 0 or int(starts[-1]) > length or bool((starts.diff() < 0).any())):
        raise DataError(
            f"{name}: must begin with 0, not decrease, and end with {length} at most, not {starts.tolist()}"
        )
    return starts.long()

# SPDX-License-Identifier: Apache-2.0
"""Methods of level kinds run on tensors: one element for each parent or position, all at once."""

from __future__ import annotations

import torch

from ...errors import DataError
from .language import as_tuple, like, running


class Eager:
    """Runs methods over the arrays of one level, which has `size` coordinates.

    `fail(array, message)` is called where an array is read outside of its bounds, as a kernel would; without it such an
    element is any other one.
    """

    def __init__(self, buffers, size: int, device: torch.device, fail=None):
        self.buffers = {name: tensor.reshape(-1) for name, tensor in buffers.items()}
        self.size = size
        self.device = device
        self.fail = fail
        self.method = ""
        self.active: list[torch.Tensor] = []  # of the loops around: the elements that still run

    def run(self, method: str, function, *arguments):
        """What a method answers, as a tuple of tensors of the arguments' length."""
        self.method = method
        length = next(a.numel() for a in arguments if isinstance(a, torch.Tensor))
        try:
            with running(self):
                answers = as_tuple(function(self, *arguments))
        except (RuntimeError, ZeroDivisionError) as error:
            raise DataError(f"'{method}' cannot be computed: {error}") from None
        return tuple(self.tensor(answer).expand(length) for answer in answers)

    def tensor(self, value) -> torch.Tensor:
        return value if isinstance(value, torch.Tensor) else torch.tensor([value], device=self.device)

    def level_size(self):
        return self.size

    def field(self, array: str, index, unsigned: int | None) -> torch.Tensor:
        index, own = self.tensor(index), self.buffers[array]
        outside = (index < 0) | (index >= own.numel())
        for active in self.active:
            outside = outside & active
        if self.fail is not None and bool(outside.any()):
            first = index.expand(outside.shape)[outside][0].item()
            self.fail(array, f"has {own.numel()} elements, and '{self.method}' reads number {first}")
        if not own.numel():
            return torch.zeros_like(index)
        found = own[index.clamp(0, own.numel() - 1)].long()
        return found if unsigned is None else found & ((1 << unsigned) - 1)

    def where(self, condition, then, otherwise):
        return torch.where(self.tensor(condition), self.tensor(then), self.tensor(otherwise))

    def _bits(self, value):
        return (self.tensor(value)[..., None] >> torch.arange(32, device=self.device)) & 1

    def popcount(self, value):
        return self._bits(value).sum(-1)

    def ctz(self, value):
        return (torch.cumsum(self._bits(value), -1) == 0).sum(-1)

    def _round(self, active, states, body):
        """The states after one more round of the elements that run."""
        self.active.append(active)
        after = [self.tensor(value) for value in as_tuple(body())]
        self.active.pop()
        return [torch.where(active, new, old) for new, old in zip(after, states)]

    def fori(self, count, body, start):
        states, count = [self.tensor(value) for value in as_tuple(start)], self.tensor(count)
        for number in range(max(int(count.max()), 0) if count.numel() else 0):
            states = self._round(number < count, states, lambda: body(number, like(start, states)))
        return like(start, states)

    def whilei(self, condition, body, start):
        states = [self.tensor(value) for value in as_tuple(start)]
        running = torch.ones(1, dtype=torch.bool, device=self.device)
        for _ in range(self.size + 64):
            self.active.append(running)
            running = running & self.tensor(condition(like(start, states)))
            self.active.pop()
            if not bool(running.any()):
                return like(start, states)
            states = self._round(running, states, lambda: body(like(start, states)))
        if self.fail is not None:
            raise DataError(f"'{self.method}' goes on for more than {self.size + 64} rounds")
        return like(start, states)

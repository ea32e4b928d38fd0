# SPDX-License-Identifier: Apache-2.0
"""The tensors that scores read at coordinates, as operands of a kernel."""

from __future__ import annotations

import dataclasses

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from ..capture.chain import Read, Trace
from ..capture.traced import Traced, combine, table
from ..errors import DataError
from ..patterns.seen import changes
from .layouts import Layout
from .places import bounds

# Coordinates are float32 numbers in a chain: whole ones are exact up to here.
EXACT = 2**24
_SMALL = WeakIdKeyDictionary()  # of integers that were looked at: when, and the largest of each selection of them


@dataclasses.dataclass(frozen=True)
class Capture:
    """What a kernel takes of a tensor: the numbers at which dimensions are read, from the last on, and its axes then.

    They are those of (b, h, i, j), and have `letters` in the kernel; of a table both are None. `dtype`: None as it is.
    Of whole numbers none has a larger magnitude than `most`.
    """

    selected: tuple[tuple[int, int], ...]
    axes: tuple[int, ...] | None
    letters: tuple[str, ...] | None
    dtype: torch.dtype | None
    most: int = EXACT

    def of(self, tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
        """Raises `DataError` for integers above `most`, for which the host waits once for each."""
        given, tensor = tensor, selected_of(tensor, self.selected)
        if not self._is_exact(given, tensor):
            raise DataError("score: a tensor of larger numbers than float32 has, or than what is made of them takes")
        if self.axes is not None:
            tensor, _ = layout.operand(tensor, list(self.axes))
        return (tensor if self.dtype is None else tensor.to(self.dtype)).contiguous()

    def _is_exact(self, given: torch.Tensor, read: torch.Tensor) -> bool:
        if given.dtype == torch.bool or given.is_floating_point() or not read.numel():
            return True
        seen, largest = _SMALL.get(given, (None, {}))
        now = None if given.is_inference() else changes(given)
        if seen is None or seen != now:
            largest = {}
        if self.selected not in largest:
            least, most = torch.stack(torch.aminmax(read)).tolist()
            largest = {**largest, self.selected: max(-least, most)}
            _SMALL[given] = now, largest
        return largest[self.selected] <= self.most


def selected_of(tensor: torch.Tensor, selected) -> torch.Tensor:
    for dim, number in selected:
        tensor = tensor.select(dim, number)
    return tensor


class Captures(TorchFunctionMode):
    """Tensors that functions read at coordinates become operands: `tensors`, and what is taken of each.

    `only_read` says that functions did nothing else with tensors, so that others of the same kind are read alike.
    """

    def __init__(self, trace: Trace, where, layout: Layout, wide: torch.dtype, half: torch.dtype | None):
        super().__init__()
        self.trace, self.where, self.layout, self.wide, self.half = trace, where, layout, wide, half
        self.every = (*layout.letters, "i", "j")
        self.tensors: list[torch.Tensor] = []
        self.made: list[Capture] = []
        self.only_read = True
        self.known: dict[tuple, tuple[torch.Tensor, Traced]] = {}  # with the tensor, whose number is taken as long

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        if function is torch.Tensor.__getitem__ and not isinstance(arguments[0], Traced):
            index = arguments[1] if isinstance(arguments[1], tuple) else (arguments[1],)
            if any(isinstance(each, Traced) for each in index):
                return self.read(arguments[0], index)
        given = (*arguments, *(keywords or {}).values())
        self.only_read &= all(isinstance(each, Traced | bool | int | float) for each in given)
        return function(*arguments, **(keywords or {}))

    def names(self) -> list[str]:
        return [f"x{number}" for number in range(len(self.tensors))]

    def broadcast(self, bias: torch.Tensor) -> Traced:
        """A tensor that broadcasts to [B, H, Sq, Sk]."""
        with torch._C.DisableTorchFunction():
            where = self.where[4 - bias.ndim :]
            return self.read(bias, tuple(0 if size == 1 else at for size, at in zip(bias.shape, where)))

    def read(self, tensor: torch.Tensor, index) -> Traced:
        """Raises `DataError` for an index that is neither a coordinate nor a number, nor follows from coordinates."""
        with torch._C.DisableTorchFunction():
            if len(index) != tensor.ndim:
                raise DataError("score: a tensor is read at one element")
            axes = [next((n for n, at in enumerate(self.where) if at is each), None) for each in index]
            named = [axis for axis in axes if axis is not None]
            computed = [each.body for each, axis in zip(index, axes) if axis is None and isinstance(each, Traced)]
            is_table = bool(computed) or len(set(named)) != len(named)
            fixed = tuple(each.body if isinstance(each, Traced) else each for each in index)
            key = (id(tensor), fixed)
            if key not in self.known:
                made = self._element(tensor, index) if is_table else self._added(tensor, index, axes)
                self.known[key] = tensor, read_as_bool(made, tensor)
            return self.known[key][1]

    def _element(self, tensor: torch.Tensor, index) -> Traced:
        """One at places that follow from coordinates, which torch counts from the end below 0."""
        lengths, where, selected = dict(zip(self.every, self.layout.shape)), [], []
        for dim in reversed(range(tensor.ndim)):
            each, size = index[dim], tensor.shape[dim]
            if not isinstance(each, Traced):
                selected.append((dim, _whole(each)))
                continue
            found = bounds(each.body, lengths) if not each.reads else None
            if found is None or not -size <= found[0] <= found[1] < size:
                raise DataError("score: a place in a tensor that does not follow from coordinates, or is outside of it")
            where.insert(0, ("end", each.body) if found[0] < 0 else each.body)
        name = self._keep(tensor, Capture(tuple(selected), None, None, self.wide))
        all_of = table(self.trace, name, len(where))
        return combine("element", all_of, *(Traced(self.trace, (), body, self.every, True) for body in where))

    def _added(self, tensor: torch.Tensor, index, axes) -> Traced:
        selected = []
        for dim in reversed(range(tensor.ndim)):
            if axes[dim] is None:
                selected.append((dim, _whole(index[dim])))
            elif is_expanded(tensor, dim):  # one element is there, which needs no axis
                selected.append((dim, 0))
        gone = [dim for dim, _ in selected]
        axes = [axis for dim, axis in enumerate(axes) if dim not in gone]
        _, letters = self.layout.operand(selected_of(tensor, selected), list(axes))
        if not letters:
            raise DataError("score: a tensor without an axis of its own")
        stays = tensor.dtype == self.half and {"i", "j"} <= set(letters)
        name = self._keep(tensor, Capture(tuple(selected), tuple(axes), letters, None if stays else self.wide))
        return Traced(self.trace, (Read(name, letters),), ("read", 0), self.every, True)

    def _keep(self, tensor: torch.Tensor, capture: Capture) -> str:
        self.tensors.append(tensor)
        self.made.append(capture)
        return self.names()[-1]


def is_expanded(tensor: torch.Tensor, dim: int) -> bool:
    """Is one element there for all of a dimension, whose gradient nobody asks for?"""
    return tensor.stride(dim) == 0 and tensor.shape[dim] > 1 and not tensor.requires_grad


def read_as_bool(made: Traced, tensor: torch.Tensor) -> Traced:
    return made != 0 if tensor.dtype == torch.bool else made


def _whole(index) -> int:
    if not isinstance(index, int) or isinstance(index, bool):
        raise DataError("score: a tensor is read at coordinates alone")
    return index

# SPDX-License-Identifier: Apache-2.0
"""What changes scores as one expression of the score, coordinates, and elements of tensors, with its derivatives."""

from __future__ import annotations

import dataclasses
import functools
import math

import torch
from torch.overrides import TorchFunctionMode

from ..capture.chain import Expression, Read, Trace
from ..capture.traced import Traced, combine, coordinates, table
from ..errors import DataError
from .layouts import Layout
from .places import CONDITIONS, bounds, whole
from .said import said
from .scores import Scores

# Coordinates are float32 numbers in a chain: whole ones are exact up to here.
_EXACT = 2**24
# What was traced of functions that read no tensor, by what they say and where: as many as a chain has kernels at hand.
_TRACED: dict[tuple, Expression] = {}
_MOST = 256


@dataclasses.dataclass
class TracedScores:
    """`body` of ("read", 0), the score, and ("read", n), operand n - 1, whose axes have `letters[n - 1]`.

    Those of an operand of which elements are read at other places are None.
    """

    body: Expression
    operands: list[torch.Tensor]
    letters: tuple[tuple[str, ...] | None, ...]

    def at_entries(self, values: torch.Tensor, where: dict[str, torch.Tensor], operands) -> torch.Tensor:
        """The changed scores, by torch, of coordinates by letter."""
        leaves = [values]
        leaves += [x if own is None else x[tuple(where[a] for a in own)] for x, own in zip(operands, self.letters)]
        return _by_torch(self.body, leaves, where)


def reads_pairs(traced: TracedScores) -> bool:
    """Are elements read at a query and a key?"""
    return any(own is None or {"i", "j"} <= set(own) for own in traced.letters)


def with_rooms(traced: TracedScores, behind: int) -> list[torch.Tensor]:
    """The operands; memory behind those of queries and keys has so many elements more, which tiles may read."""
    found = []
    for tensor, own in zip(traced.operands, traced.letters):
        if behind and {"i", "j"} <= set(own or ()):
            tensor = torch.nn.functional.pad(tensor.reshape(-1), (0, behind))[: tensor.numel()].view(tensor.shape)
        found.append(tensor)
    return found


def trace_scores(
    changes: Scores, layout: Layout, wide: torch.dtype, half: torch.dtype | None = None
) -> TracedScores | None:
    """None for what is more than arithmetic of the score, coordinates and tensors read at coordinates.

    Tensors are of the dtype `wide`; those of `half` that have both coordinates stay as they are.
    """
    key = _key(changes, layout)
    if key in _TRACED:
        return TracedScores(_TRACED[key], [], ())
    made = _traced_scores(changes, layout, wide, half)
    if key is not None and made is not None and not made.operands:
        if len(_TRACED) == _MOST:
            _TRACED.clear()
        _TRACED[key] = made.body
    return made


def _key(changes: Scores, layout: Layout) -> tuple | None:
    """What a trace follows from; None of functions that read tensors, whose numbers change, or that are not known."""
    if changes.bias is not None or changes.key_padding is not None:
        return None
    functions = [changes.score, *changes.masks] if changes.score is not None else changes.masks
    keys = tuple(map(said, functions))
    return None if None in keys else (layout.kind, changes.score is None, keys)


def _traced_scores(changes: Scores, layout: Layout, wide: torch.dtype, half: torch.dtype | None):
    letters = (*layout.letters, "i", "j")
    trace = Trace()
    where = layout.places(coordinates(trace, letters))
    captures = _Captures(trace, where, layout, wide, half)
    score = Traced.of(trace, Read("score", letters), True)
    try:
        with captures:
            found = _changed(changes, score, where, captures)
    except Exception:  # the statements tell what is wrong with it, if anything
        return None
    read = [each.name for each in found.reads]
    used = [n for n, name in enumerate(captures.names) if name in read]
    names = ["score", *(captures.names[n] for n in used)]
    body = _renamed(found.body, [names.index(name) for name in read])
    if "score" not in read or not _is_exact(body, tuple(zip(letters, layout.shape))):
        return None
    return TracedScores(body, [captures.tensors[n] for n in used], tuple(captures.letters[n] for n in used))


def _changed(changes: Scores, score: Traced, where, captures: _Captures) -> Traced:
    if changes.score is not None:
        score = changes.score(score, *where)
    if changes.bias is not None:
        score = score + captures.broadcast(changes.given_bias)
    kept = []
    if changes.key_padding is not None:
        padding = captures.read(changes.key_padding, (where[0], where[3]))
        if changes.key_padding.is_floating_point():
            score = score + padding
        else:
            kept.append(padding if padding.is_bool else padding != 0)
    for mask in changes.masks:
        kept.append(mask(*where))
        if not isinstance(kept[-1], Traced) or not kept[-1].is_bool:
            raise DataError("mask: the function must answer bool")
    if not isinstance(score, Traced) or score.is_bool or not score.sampled:
        raise DataError("score: the function must answer a number")
    for each in kept[1:]:
        kept[0] = combine("and", kept[0], each)
    return combine("where", kept[0], score, -math.inf) if kept else score


class _Captures(TorchFunctionMode):
    """Tensors that functions read at coordinates become operands."""

    def __init__(self, trace: Trace, where, layout: Layout, wide: torch.dtype, half: torch.dtype | None):
        super().__init__()
        self.trace, self.where, self.layout, self.wide, self.half = trace, where, layout, wide, half
        self.every = (*layout.letters, "i", "j")
        self.tensors: list[torch.Tensor] = []
        self.letters: list[tuple[str, ...] | None] = []
        self.names: list[str] = []
        self.known: dict[tuple, tuple[torch.Tensor, Traced]] = {}  # with the tensor, whose number is taken as long

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        if function is torch.Tensor.__getitem__ and not isinstance(arguments[0], Traced):
            index = arguments[1] if isinstance(arguments[1], tuple) else (arguments[1],)
            if any(isinstance(each, Traced) for each in index):
                return self.read(arguments[0], index)
        return function(*arguments, **(keywords or {}))

    def broadcast(self, bias: torch.Tensor) -> Traced:
        """A tensor that broadcasts to [B, H, Sq, Sk]."""
        bias = bias[(None,) * (4 - bias.ndim)]
        return self.read(bias, tuple(0 if size == 1 else at for size, at in zip(bias.shape, self.where)))

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
                self.known[key] = tensor, made
            return self.known[key][1]

    def _element(self, tensor: torch.Tensor, index) -> Traced:
        """One at places that follow from coordinates, which torch counts from the end below 0."""
        lengths, where = dict(zip(self.every, self.layout.shape)), []
        for dim in reversed(range(tensor.ndim)):
            each, size = index[dim], tensor.shape[dim]
            if not isinstance(each, Traced):
                tensor = tensor.select(dim, _whole(each))
                continue
            found = bounds(each.body, lengths) if not each.reads else None
            if found is None or not -size <= found[0] <= found[1] < size:
                raise DataError("score: a place in a tensor that does not follow from coordinates, or is outside of it")
            where.insert(0, ("end", each.body) if found[0] < 0 else each.body)
        if tensor.numel() and self._is_large(tensor):
            raise DataError("score: a tensor of larger numbers than float32 has")
        self._keep(tensor.to(self.wide), None)
        all_of = table(self.trace, self.names[-1], tensor.ndim)
        read = combine("element", all_of, *(Traced(self.trace, (), body, self.every, True) for body in where))
        return read != 0 if tensor.dtype == torch.bool else read

    def _is_large(self, tensor: torch.Tensor) -> bool:
        is_number = tensor.dtype == torch.bool or tensor.is_floating_point()
        return not is_number and int(tensor.abs().max()) > _EXACT

    def _keep(self, tensor: torch.Tensor, letters) -> None:
        self.names.append(f"x{len(self.names)}")
        self.tensors.append(tensor.contiguous())
        self.letters.append(letters)

    def _added(self, tensor: torch.Tensor, index, axes) -> Traced:
        for dim in reversed(range(tensor.ndim)):
            is_expanded = tensor.stride(dim) == 0 and tensor.shape[dim] > 1 and not tensor.requires_grad
            if axes[dim] is None:
                tensor = tensor.select(dim, _whole(index[dim]))
            elif is_expanded:  # one element is there, which needs no axis
                tensor, axes = tensor.select(dim, 0), [*axes[:dim], None, *axes[dim + 1 :]]
        tensor, letters = self.layout.operand(tensor, [axis for axis in axes if axis is not None])
        if not letters:
            raise DataError("score: a tensor without an axis of its own")
        if tensor.numel() and self._is_large(tensor):
            raise DataError("score: a tensor of larger numbers than float32 has")
        stays = tensor.dtype == self.half and {"i", "j"} <= set(letters)
        self._keep(tensor if stays else tensor.to(self.wide), letters)
        read = Traced(self.trace, (Read(self.names[-1], letters),), ("read", 0), self.every, True)
        return read != 0 if tensor.dtype == torch.bool else read


def _whole(index) -> int:
    if not isinstance(index, int) or isinstance(index, bool):
        raise DataError("score: a tensor is read at coordinates alone")
    return index


def _renamed(body: Expression, numbers: list[int]) -> Expression:
    if body[0] == "read":
        return ("read", numbers[body[1]])
    return (body[0], *(_renamed(part, numbers) if isinstance(part, tuple) else part for part in body[1:]))


def _reads(body: Expression) -> bool:
    return body[0] == "read" or any(isinstance(part, tuple) and _reads(part) for part in body[1:])


@functools.lru_cache(maxsize=1024)
def _is_exact(body: Expression, lengths: tuple[tuple[str, int], ...]) -> bool:
    """Are whole numbers small enough, and is what is compared or divided to whole ones whole?

    Functions are traced at each call, for what they read may have changed; mostly they say what they said before.
    """
    return _has_exact_parts(body, dict(lengths))


def _has_exact_parts(body: Expression, lengths: dict[str, int]) -> bool:
    if body[0] in ("read", "index", "number"):
        return body[0] != "index" or lengths[body[1]] <= _EXACT
    if not _reads(body):
        found = whole(body, lengths)
        if found is not None or body[0] in (*CONDITIONS, "floordiv", "mod"):
            return found is not None and found.largest <= _EXACT
    elif body[0] in ("floordiv", "mod"):
        return False
    return all(_has_exact_parts(part, lengths) for part in body[1:])


def replayed(body: Expression, leaves: list[Traced]) -> Traced | float:
    """The expression again, of what a chain made: the first leaf is on the pattern."""
    if body[0] == "read":
        return leaves[body[1]]
    if body[0] == "number":
        return body[1]
    first = leaves[0]
    if body[0] == "index":
        return Traced(first.trace, (), body, first.letters, True)
    parts = [replayed(part, leaves) for part in body[1:]]
    if not any(isinstance(part, Traced) for part in parts):
        return float(_TORCH[body[0]](*(torch.tensor(part, dtype=torch.float64) for part in parts)))
    return combine(body[0], *parts)


_TORCH = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "floordiv": torch.floor_divide,
    "mod": torch.remainder, "neg": torch.neg, "exp": torch.exp, "exp2": torch.exp2, "log": torch.log,
    "tanh": torch.tanh, "sqrt": torch.sqrt, "erf": torch.erf, "abs": torch.abs, "where": torch.where,
    "maximum": torch.maximum, "minimum": torch.minimum, "lt": torch.lt, "le": torch.le, "gt": torch.gt,
    "ge": torch.ge, "eq": torch.eq, "ne": torch.ne, "and": torch.logical_and, "or": torch.logical_or,
    "not": torch.logical_not,
}  # fmt: skip


def _by_torch(body: Expression, leaves, where) -> torch.Tensor:
    if body[0] == "read":
        return leaves[body[1]]
    if body[0] == "index":
        return where[body[1]].to(leaves[0].dtype)
    if body[0] == "number":
        return torch.tensor(body[1], dtype=leaves[0].dtype)
    if body[0] == "end":
        return _by_torch(body[1], leaves, where)
    if body[0] == "element":
        return leaves[body[1][1]][tuple(_by_torch(place, leaves, where).long() for place in body[2:])]
    return _TORCH[body[0]](*(_by_torch(part, leaves, where) for part in body[1:]))

# SPDX-License-Identifier: Apache-2.0
"""What changes scores as one expression of the score, coordinates, and elements of tensors, with its derivatives."""

from __future__ import annotations

import dataclasses
import math

import torch

from ..capture.chain import Expression, Read, Trace
from ..capture.traced import Traced, combine, coordinates
from ..errors import DataError
from .captures import Capture, Captures
from .exact import most_of_reads
from .layouts import Layout
from .said import kind_of_tensor, number_of, said
from .scores import Scores

Source = tuple[int, Capture]
"""The number of a tensor among those that functions hold, and what is taken of it."""
# What was traced, by what functions say and where: as many as a chain has kernels at hand.
_TRACED: dict[tuple, tuple[Expression, list[Source]]] = {}
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
    tensors: list[torch.Tensor] = []
    key = _key(changes, layout, (wide, half), tensors)
    known = _TRACED.get(key) if key is not None else None
    if known is None:
        known = _traced_scores(changes, layout, wide, half, tensors, key)
    if known is None:
        return None
    body, sources = known
    try:
        operands = [capture.of(tensors[number], layout) for number, capture in sources]
    except DataError:
        return None
    return TracedScores(body, operands, tuple(capture.letters for _, capture in sources))


def _key(changes: Scores, layout: Layout, dtypes: tuple, tensors: list[torch.Tensor]) -> tuple | None:
    """What a trace follows from, beside the `tensors` that it reads; None of functions that are not known."""
    functions = [changes.score, *changes.masks] if changes.score is not None else changes.masks
    keys = [said(function, tensors) for function in functions]
    given = (changes.given_bias, changes.key_padding)
    keys += ["" if each is None else kind_of_tensor(each, tensors) for each in given]
    return None if None in keys else (layout.kind, changes.score is None, dtypes, *keys)


def _traced_scores(changes: Scores, layout: Layout, wide, half, tensors: list[torch.Tensor], key):
    """The expression and the sources of its operands; kept under the key where these are all that it follows from."""
    letters = (*layout.letters, "i", "j")
    trace = Trace()
    where = layout.places(coordinates(trace, letters))
    captures = Captures(trace, where, layout, wide, half)
    score = Traced.of(trace, Read("score", letters), True)
    try:
        with captures:
            found = _changed(changes, score, where, captures)
    except Exception:  # the statements tell what is wrong with it, if anything
        return None
    read = [each.name for each in found.reads]
    used = [n for n, name in enumerate(captures.names()) if name in read]
    names = ["score", *(captures.names()[n] for n in used)]
    body = _renamed(found.body, [names.index(name) for name in read])
    dtypes = tuple(captures.tensors[n].dtype for n in used)
    most = most_of_reads(body, tuple(zip(letters, layout.shape)), dtypes, wide) if "score" in read else None
    if most is None:
        return None
    held = len(tensors)
    numbers = [number_of(captures.tensors[n], tensors) for n in used]
    sources = [(number, dataclasses.replace(captures.made[n], most=most)) for number, n in zip(numbers, used)]
    if key is not None and captures.only_read and len(tensors) == held:
        if len(_TRACED) == _MOST:
            _TRACED.clear()
        _TRACED[key] = body, sources
    return body, sources


def _changed(changes: Scores, score: Traced, where, captures: Captures) -> Traced:
    if changes.score is not None:
        score = changes.score(score, *where)
    if changes.bias is not None:
        score = score + captures.broadcast(changes.given_bias)
    kept = []
    if changes.key_padding is not None:
        padding = captures.read(changes.key_padding, (where[0], where[3]))
        if changes.adds_padding:
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


def _renamed(body: Expression, numbers: list[int]) -> Expression:
    if body[0] == "read":
        return ("read", numbers[body[1]])
    return (body[0], *(_renamed(part, numbers) if isinstance(part, tuple) else part for part in body[1:]))


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

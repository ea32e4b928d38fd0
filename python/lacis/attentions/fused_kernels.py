# SPDX-License-Identifier: Apache-2.0
"""The kernels of fused attention and of its gradients: made where they are asked for."""

from __future__ import annotations

import functools
import math

import torch

from ..capture.chain import Expression
from ..capture.traced import Traced, combine
from ..capture.traced_softmax import traced_logsumexp, traced_softmax
from ..runtime.chain import ChainFunction
from ..runtime.einsum import einsum
from .derivative import derivative
from .dropout import TracedDropout
from .layouts import Layout
from .traced_scores import replayed

ROLES = {"rows": "grad_query", "columns": "grad_key_value"}
"""What walks rows, and what walks columns, as steps and `kernels` name it."""
APART = {"keys": "grad_key", "values": "grad_value"}
"""What walks columns of heads whose sums of both have no place in the registers of one kernel."""
_STEPS = ROLES | dict.fromkeys(APART, "grad_key_value")
_GIVEN = ("q", "k", "v", "lse", "arrived", "delta", "pattern")
_UNREAD = {"values": ("v", "delta")}  # by what walks columns for values alone
_OWN = {"rows": (0,), "columns": (1, 2), "keys": (1,), "values": (2,), "pairs": ()}  # gradients, of q, k and v
_SUMS = 256  # columns of gradients whose sums one kernel of a GPU keeps in registers


class Kernels:
    """Attention whose scores change by `body`, of operands with these letters; those of a table are None.

    `z` and `zk` are the letters of scores, and of k and v, before their rows; `zq` those of q where it lacks some of
    the scores': then results are parts, which are not rounded. With `dropout` the last operand is the seed.
    Where it `turns` operands with both coordinates, columns read them transposed; else they lie as for rows.
    """

    def __init__(
        self,
        z: str,
        zk: str,
        scale: float,
        body: Expression,
        letters,
        zq: str = "",
        dropout: TracedDropout | None = None,
        turns: bool = True,
    ):
        self.z, self.zk, self.scale, self.body, self.letters, self.zq = z, zk, scale, body, letters, zq or z
        self.turns = turns
        self.dropout, self.seed = dropout, "seed" if dropout else ""
        self.names = *(f"x{number}" for number in range(len(letters))), *[self.seed] * bool(dropout)
        names = "q", "k", "v", "pattern", *self.names
        self.attention = ChainFunction(self._attention, names, rounded=0 if zq else 1, seed=self.seed)
        self.output = ChainFunction(self._output, names, rounded=0 if zq else 1, seed=self.seed)
        self.made: dict[tuple, ChainFunction] = {}

    def _leaves(self, q, k, pattern, operands, ij: str) -> list[Traced]:
        """The score and the operands; those that are turned have both coordinates in the order of the pattern's."""
        z, zk = self.z, self.zk
        s = einsum(f"{z}{ij},{self.zq}id,{zk}jd->{z}{ij}", pattern, q, k) * self.scale
        found = [s]
        for x, letters in zip(operands, self.letters):
            own = _ordered(letters, ij) if letters is not None and self.turns else letters
            table = x.as_table() if own is None else Traced(s.trace, x.at(own).reads, ("read", 0), s.letters, True)
            found.append(table)
        return found

    def _attention(self, q, k, v, pattern, *operands):
        z, zk = self.z, self.zk
        s = replayed(self.body, self._leaves(q, k, pattern, operands, "ij"))
        shares = traced_softmax(s, "j")
        if self.dropout:
            shares = self.dropout.of(shares, operands[-1].at(()))
        return einsum(f"{z}ij,{zk}je->{z}ie", shares, v), traced_logsumexp(s, "j")

    def _output(self, *given):
        return self._attention(*given)[0]

    def _shares(self, q, k, lse, pattern, operands, ij: str) -> tuple[Traced, list[Traced]]:
        """The shares again, and the leaves. One that dropout drops has a sign."""
        leaves = self._leaves(q, k, pattern, operands, ij)
        p = combine("exp", replayed(self.body, leaves) - lse.at((*self.z, "i")))
        if self.dropout:
            p = combine("where", self.dropout.kept(p, operands[-1].at(())), p, -p)
        return Traced.of(p.trace, p.read("p"), True), leaves  # made once for all that read it

    def _left(self, p: Traced) -> Traced:
        """The shares behind dropout."""
        return combine("maximum", p, 0.0) * self.dropout.factor if self.dropout else p

    def _of_scores(self, given, ij: str) -> tuple[Traced, Traced, list[Traced]]:
        """The shares behind dropout, the gradients of the changed scores, and the leaves."""
        q, k, v, lse, arrived, delta, pattern, *operands = given
        z, zk = self.z, self.zk
        p, leaves = self._shares(q, k, lse, pattern, operands, ij)
        of_shares = einsum(f"{z}{ij},{z}ie,{zk}je->{z}{ij}", pattern, arrived, v)
        delta = delta.at((*z, "i"))
        if self.dropout:
            left = self._left(p)
            return left, left * of_shares - combine("abs", p) * delta, leaves
        return p, p * (of_shares - delta), leaves

    def _of(self, leaves, changed: Traced, number: int) -> Traced:
        """The gradient of the score, or of an operand at each entry."""
        body = self.body
        while body[0] == "where" and body[3] == ("number", -math.inf):  # a masked entry has no share, and no gradient
            body = body[2]
        found = derivative(body, number)
        if found is None or found == ("number", 1.0):
            return changed if found else changed * 0.0
        return changed * replayed(found, leaves)

    def gradients(self, layout: Layout, given, operands, needed, steps) -> list[torch.Tensor | None]:
        """Those of q, k, v and the operands that are needed; `given` are all before the pattern, `steps` by role."""
        found: list[torch.Tensor | None] = [None] * len(needed)
        rows = [n for n, own in enumerate(self.letters) if needed[3 + n] and "j" not in own]
        columns = [n for n, own in enumerate(self.letters) if needed[3 + n] and "j" in own and "i" not in own]
        pairs = [n for n, own in enumerate(self.letters) if needed[3 + n] and "j" in own and "i" in own]
        if needed[0] or rows:
            made = self._run("rows", (needed[0], tuple(rows)), given, layout.pattern(), operands, steps)
            found[0] = made.pop(0) if needed[0] else None
            for number, each in zip(rows, made):
                found[3 + number] = _summed(each, (*self.z, "i"), self.letters[number])
        if needed[1] or needed[2] or columns:
            across = operands
            if self.turns:
                across = [
                    x.mT.contiguous() if {"i", "j"} <= set(own or ()) else x for x, own in zip(operands, self.letters)
                ]
                across += operands[len(self.letters) :]
            by = layout.pattern(columns=True)
            walks = [("columns", needed[1] or needed[2], columns)]
            if self.sums_apart(given[0], given[2]):
                walks = [("keys", needed[1], columns), ("values", needed[2], [])]
            for what, of_own, numbers in walks:
                made = self._run(what, (of_own, tuple(numbers)), given, by, across, steps) if of_own or numbers else []
                for number in _OWN[what] if of_own else ():
                    found[number] = _summed(made.pop(0), (*self.z, "j", "e"), (*self.zk, "j", "e"))
                for number, each in zip(numbers, made):
                    found[3 + number] = _summed(each, (*self.z, "j"), self.letters[number])
        for number in pairs:
            (each,) = self._run("pairs", (number,), given, layout.pattern(), operands, steps)
            found[3 + number] = _summed(each.to_dense(), (*self.z, "i", "j"), self.letters[number])
        return found

    def sums_apart(self, q: torch.Tensor, v: torch.Tensor) -> bool:
        """Have keys and values a kernel each?"""
        return not self.turns and q.shape[-1] + v.shape[-1] > _SUMS

    def given(self, what: str, tensors) -> tuple:
        """Those that it reads, of all before the operands."""
        return tuple(x for name, x in zip(_GIVEN, tensors) if name not in _UNREAD.get(what, ()))

    def gradient(self, what: str, asked: tuple) -> ChainFunction:
        """By `"rows"`, of q, by `"columns"`, of k and v, by `"keys"` or `"values"` of one, or of `"pairs"`.

        `asked`: of these, and of which operands.
        """
        if (what, asked) not in self.made:
            function = functools.partial(getattr(self, f"_{what}"), asked)
            functools.update_wrapper(function, getattr(self, f"_{what}"))
            rounded = len(_OWN[what]) if asked[0] is True else 0
            names = self.given(what, _GIVEN)
            self.made[what, asked] = ChainFunction(function, (*names, *self.names), rounded, self.seed)
        return self.made[what, asked]

    def steps_of(self, what: str, steps) -> tuple:
        """Of those by role."""
        return steps.get(_STEPS.get(what), ())

    def _run(self, what: str, asked: tuple, given, pattern, operands, steps) -> list:
        own = (*self.given(what, (*given, pattern)), *operands)
        _, made = self.gradient(what, asked).run(own, self.steps_of(what, steps))
        return list(made) if isinstance(made, tuple) else [made]

    def _rows(self, asked, *given):
        """The gradients of q, and of operands without keys, for each query."""
        z, (of_query, numbers) = self.z, asked
        _, changed, leaves = self._of_scores(given, "ij")
        found = []
        if of_query:
            found.append(einsum(f"{z}ij,{self.zk}jd->{z}id", self._of(leaves, changed, 0) * self.scale, given[1]))
        found += [einsum(f"{z}ij->{z}i", self._of(leaves, changed, 1 + number)) for number in numbers]
        return tuple(found) if len(found) > 1 else found[0]

    def _columns(self, asked, *given, values: bool = True):
        """The gradients of k and v, for each head of q, and of operands without queries, for each key."""
        of_keys, numbers = asked
        p, changed, leaves = self._of_scores(given, "ji")
        found = [self._of_keys(leaves, changed, given[0])] if of_keys else []
        found += [self._of_values(p, given[4])] if of_keys and values else []
        found += self._of_operands(leaves, changed, numbers)
        return tuple(found) if len(found) > 1 else found[0]

    def _keys(self, asked, *given):
        """Those without that of v."""
        return self._columns(asked, *given, values=False)

    def _values(self, asked, q, k, lse, arrived, pattern, *operands):
        """The gradient of v alone."""
        p, _ = self._shares(q, k, lse, pattern, operands, "ji")
        return self._of_values(self._left(p), arrived)

    def _of_keys(self, leaves, changed: Traced, q) -> Traced:
        z = self.z
        return einsum(f"{z}ji,{z}id->{z}jd", self._of(leaves, changed, 0) * self.scale, q)

    def _of_values(self, shares: Traced, arrived) -> Traced:
        z = self.z
        return einsum(f"{z}ji,{z}ie->{z}je", shares, arrived)

    def _of_operands(self, leaves, changed: Traced, numbers) -> list[Traced]:
        return [einsum(f"{self.z}ji->{self.z}j", self._of(leaves, changed, 1 + number)) for number in numbers]

    def _pairs(self, asked, *given):
        """The gradient of an operand with both coordinates, at each entry."""
        _, changed, leaves = self._of_scores(given, "ij")
        return self._of(leaves, changed, 1 + asked[0]) * 1.0


def _ordered(letters, ij: str) -> tuple[str, ...]:
    both = {"i", "j"} <= set(letters)
    return (*letters[:-2], *ij) if both else letters


def _summed(tensor: torch.Tensor, letters, kept) -> torch.Tensor:
    """The sum over the axes whose letters are not kept."""
    dims = [dim for dim, letter in enumerate(letters) if letter not in kept]
    return tensor.sum(dims) if dims else tensor

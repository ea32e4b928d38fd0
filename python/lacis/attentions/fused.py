# SPDX-License-Identifier: Apache-2.0
"""Attention as one kernel, where a chain can say it: a loop over the stored blocks of each row, on CPUs."""

from __future__ import annotations

import math

import torch

from ..capture.chain import Expression, Trace
from ..capture.traced import Traced, combine, coordinates
from ..capture.traced_softmax import traced_logsumexp, traced_softmax
from ..nn.recorded import is_transformed
from ..runtime.chain import ChainFunction
from ..runtime.einsum import einsum
from .patterns import Chosen
from .scores import Scores
from .softmax import each
from .walks import by_columns, by_rows

# Coordinates are float32 numbers in a chain: whole ones are exact up to here.
_EXACT = 2**24
# Kernels have scales and masks with their numbers compiled in; where so many differ they change from call to call.
_KINDS = 64
# How large a result is, of operands so large; comparisons and what joins them are no numbers.
_WHOLE = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a + b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a + 1,
    "mod": lambda a, b: b, "neg": lambda a: a, "abs": lambda a: a, "not": lambda a: a,
}  # fmt: skip
_WHOLE |= dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne", "and", "or"), max)
_KNOWN: dict[tuple, _Kernels] = {}


def together(statements, k, v, scale: float, changes: Scores) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The output and the log of the sums of one kernel, of which all but the last axes are those of the pattern.

    None where statements have to make them: on a GPU, under transforms, for what changes scores and is no mask of
    positions, and for sums of formats.
    """
    chosen, q = statements.chosen, statements.q
    cpu = q.device.type == "cpu" and (statements.target == "auto" or statements.target.startswith("cpu"))
    if not cpu or torch.compiler.is_compiling() or is_transformed():
        return None
    if not (changes.of_positions and min(chosen.pattern.shape) and q.numel() and v.numel()):
        return None
    pattern, kept = by_rows(chosen.pattern), _traced(chosen, q.shape[1], changes.masks)
    key = chosen.letters, scale, kept
    if pattern is None or kept is None or (key not in _KNOWN and len(_KNOWN) == _KINDS):
        return None
    if key not in _KNOWN:
        _KNOWN[key] = _Kernels(*key)
    operands = [statements.led(each) for each in (q, k, v)]
    return Fused.apply(_KNOWN[key], statements, pattern, scale, changes, *operands)


def _traced(chosen: Chosen, heads: int, masks) -> Expression | None:
    """The masks as one expression of coordinates; None for a function that does more than arithmetic with them."""
    letters = (*chosen.letters, "i", "j")
    where = chosen.places(heads, coordinates(Trace(), letters))
    every: Expression = ()
    for mask in masks:
        try:
            found = mask(*where)
        except Exception:  # the statements tell what is wrong with it, if anything
            return None
        lengths = dict(zip(letters, chosen.pattern.shape))
        if not isinstance(found, Traced) or not found.is_bool or _largest(found.body, lengths) > _EXACT:
            return None
        every = ("and", every, found.body) if every else found.body
    return every


def _largest(body: Expression, lengths: dict[str, int]) -> float:
    """No part of the expression has a larger magnitude; infinity for what is no arithmetic of whole numbers."""
    operation, *parts = body
    if operation == "index":
        return lengths[parts[0]]
    if operation == "number":
        return abs(parts[0]) if float(parts[0]).is_integer() else math.inf
    if operation not in _WHOLE:
        return math.inf
    found = [_largest(part, lengths) for part in parts]
    if operation in ("floordiv", "mod") and (parts[1][0] != "number" or parts[1][1] < 1):
        return math.inf
    return max([*found, _WHOLE[operation](*found)])


class _Kernels:
    """Attention under masks, and what its gradients read: kernels that are made where they are asked for."""

    def __init__(self, z: str, scale: float, kept: Expression):
        def scores(q, k, pattern, ij="ij") -> Traced:
            s = einsum(f"{z}{ij},{z}id,{z}jd->{z}{ij}", pattern, q, k) * scale
            return combine("where", Traced(s.trace, (), kept, s.letters, True), s, -math.inf) if kept else s

        def attention(q, k, v, pattern):
            s = scores(q, k, pattern)
            return einsum(f"{z}ij,{z}je->{z}ie", traced_softmax(s, "j"), v), traced_logsumexp(s, "j")

        def of_scores(q, k, v, lse, arrived, delta, pattern, ij) -> tuple[Traced, Traced]:
            """The shares, and the gradient of the products before the scale."""
            p = torch.exp(scores(q, k, pattern, ij) - lse.at((*z, "i")))
            p = Traced.of(p.trace, p.read("p"), True)  # made once for both gradients
            of_shares = einsum(f"{z}{ij},{z}ie,{z}je->{z}{ij}", pattern, arrived, v)
            return p, p * (of_shares - delta.at((*z, "i"))) * scale

        def of_query(q, k, v, lse, arrived, delta, pattern):
            _, ds = of_scores(q, k, v, lse, arrived, delta, pattern, "ij")
            return einsum(f"{z}ij,{z}jd->{z}id", ds, k)

        def of_key_value(q, k, v, lse, arrived, delta, pattern):
            p, ds = of_scores(q, k, v, lse, arrived, delta, pattern, "ji")
            return einsum(f"{z}ji,{z}id->{z}jd", ds, q), einsum(f"{z}ji,{z}ie->{z}je", p, arrived)

        self.attention, self.of_query, self.of_key_value = map(ChainFunction, (attention, of_query, of_key_value))


class Fused(torch.autograd.Function):
    """Output and log of the sums by one kernel; gradients make the shares again of that log."""

    @staticmethod
    def forward(ctx, kernels, statements, pattern, scale, changes, q, k, v):
        output, lse = kernels.attention(q, k, v, pattern)
        ctx.pattern = pattern
        ctx.kernels, ctx.statements, ctx.scale, ctx.changes = kernels, statements, scale, changes
        ctx.save_for_backward(q, k, v, output, lse)
        return output, lse

    @staticmethod
    def backward(ctx, arrived, of_lse):
        q, k, v, output, lse = ctx.saved_tensors
        with torch.autocast(q.device.type, enabled=False):
            empty = lse == -math.inf
            delta = (arrived * output).sum(-1) - torch.where(empty, 0, of_lse)
            given = q, k, v, torch.where(empty, 0, lse), arrived, delta
            asked = ctx.needs_input_grad[5:]
            found = (Fused.by_statements if torch.is_grad_enabled() else Fused.again)(ctx, asked, *given)
        return None, None, None, None, None, *found

    @staticmethod
    def again(ctx, asked, *given):
        """The gradient of q by rows, those of k and v by columns, each by one kernel."""
        of_q = of_k = of_v = None
        if asked[0]:
            of_q = ctx.kernels.of_query(*given, ctx.pattern)
        if asked[1] or asked[2]:
            of_k, of_v = ctx.kernels.of_key_value(*given, by_columns(ctx.pattern))
        return of_q, of_k, of_v

    @staticmethod
    def by_statements(ctx, asked, q, k, v, lse, arrived, delta):
        """The same with gradients of its own."""
        z, target, fibres = ctx.statements.letters, ctx.statements.target, ctx.statements.fibres
        scores = ctx.statements.scores(q, k, ctx.scale, ctx.changes)
        one = fibres.spread(torch.ones_like(lse))  # 0 in padding
        shares = each(lambda s, t, one: torch.exp(s - t) * one, scores, fibres.spread(lse), one)
        of_shares = einsum(f"{z}ij,{z}ie,{z}je->{z}ij", ctx.statements.chosen.pattern, arrived, v, target=target)
        of_scores = each(lambda p, d, all: p * (d - all) * ctx.scale, shares, of_shares, fibres.spread(delta))
        products = (
            (f"{z}ij,{z}jd->{z}id", of_scores, k),
            (f"{z}ij,{z}id->{z}jd", of_scores, q),
            (f"{z}ij,{z}ie->{z}je", shares, arrived),
        )
        return [einsum(*each, target=target) if needed else None for each, needed in zip(products, asked)]

# SPDX-License-Identifier: Apache-2.0
"""Attention as one kernel, where a chain can say it: a loop over the stored blocks of each row."""

from __future__ import annotations

import functools
import math

import torch

from ..capture.chain import Expression, Trace
from ..capture.traced import coordinates
from ..formats import Sum
from ..patterns.transforms import is_transformed
from ..nn.watched import show
from ..runtime.autocast import outside
from .dropout import Dropout, TracedDropout
from .kernels_of import AttentionKernels
from .fused_kernels import Kernels
from .layouts import Layout
from .parts import by_parts
from .row_products import row_products
from .scores import Scores
from .tiles import at_chunks, on_gpu, padded, room_behind, takes_gradients, takes_tiles, takes_type
from .traced_scores import TracedScores, trace_scores, with_rooms

# Kernels have scales and masks with their numbers compiled in; where so many differ in numbers alone, those change from
# call to call.
_ALIKE = 64
_KNOWN: dict[tuple, Kernels] = {}


def together(statements, k, v, scale: float, changes: Scores, dtype: torch.dtype, dropout: Dropout | None, steps):
    """The output [B, H, Sq, Dv] and the log of the sums [B, H, Sq], of one kernel, of parts in `dtype`.

    `steps` are those of its kernels, by role.

    None where statements have to make them: under transforms, for sums of formats, for what changes scores by more
    than arithmetic of coordinates and tensors read at them; on a GPU also for what tensor cores do not take as it is.
    """
    chosen, q = statements.chosen, statements.q
    here = statements.target == "auto" or statements.target.startswith(q.device.type)
    if not here or torch.compiler.is_compiling() or is_transformed():
        return None
    if not (min(chosen.pattern.shape) and q.numel() and v.numel()):
        return None
    width, has_tiles = v.shape[-1], on_gpu(q)
    if takes_type(q):  # columns of zeros change no product, and the output has them behind its own
        q, k, v = map(padded, (q, k, v))
    layout = Layout(chosen, q, k)
    few = by_parts(layout, q, k, v, changes, statements.wide) if has_tiles and dropout is None else None
    if few is not None:
        parts, traced, operands = few
        kernels = _kernels(parts, scale, traced)
        if kernels is None:
            return None
        operands = [*operands[:3], parts.pattern(), *operands[3:]]
        _, made = kernels.attention.run(operands, steps.get("forward", ()))
        output, lse = parts.merged_parts(*made, dtype)
        return output[..., :width], lse
    traced = one_kernel(layout, q, k, v, changes, statements.wide)
    if traced is None:
        return None
    room = room_behind(layout.base) if has_tiles else 0
    if room and None in traced.letters:  # tiles would read outside of a table there
        return None
    kernels = _kernels(layout, scale, traced, _traced(dropout, layout), has_tiles)
    has_gradients = not has_tiles or takes_gradients(q, v)
    if kernels is None or not (has_gradients or steps.keys() <= {"forward"}):
        return None
    operands = layout.query(q), *map(layout.key, (k, v))
    operands = [*(each if has_tiles else each.to(statements.wide) for each in operands), *with_rooms(traced, room)]
    operands = [*(map(at_chunks, operands) if has_tiles else operands), *([dropout.seed] if dropout else ())]
    call = _Call(kernels, statements, layout, traced, scale, steps, has_gradients)
    records = torch.is_grad_enabled() and any(x.requires_grad for x in operands)
    output, lse = Fused.apply(call, *operands) if records else call.forward(operands)
    output = output.reshape(*q.shape[:3], v.shape[-1])
    return output if v.shape[-1] == width else output[..., :width], lse.reshape(q.shape[:3])


def one_kernel(layout: Layout, q, k, v, changes: Scores, wide: torch.dtype) -> TracedScores | None:
    """What becomes of scores where one kernel makes all of them.

    None where no kernel walks the pattern, or says what changes scores; on a GPU for what tensor cores do not take.
    """
    has_tiles = on_gpu(q)
    if (has_tiles and not takes_tiles(layout.base, q, k, v)) or isinstance(layout.base.format, Sum):
        return None
    return trace_scores(changes, layout, wide, q.dtype if has_tiles else None)


def _traced(dropout: Dropout | None, layout: Layout) -> TracedDropout | None:
    if dropout is None:
        return None
    where = layout.places(coordinates(Trace(), (*layout.letters, "i", "j")))
    return TracedDropout(dropout.rate, tuple(each.body for each in where))


def _kernels(layout: Layout, scale: float, traced: TracedScores, dropout: TracedDropout | None = None, has_tiles=True):
    """None where too many differ from them in numbers alone."""
    key = layout.letters, scale, traced.body, traced.letters, dropout, has_tiles
    known = _KNOWN.get(key)
    if known is not None:
        return known
    kind = _without_numbers(key)
    if sum(_without_numbers(each) == kind for each in _KNOWN) >= _ALIKE:
        return None
    known = Kernels(layout.letters, layout.key_letters, *key[1:4], layout.query_letters, dropout, turns=not has_tiles)
    _KNOWN[key] = known
    return known


@functools.lru_cache(maxsize=1024)
def _without_numbers(key: tuple) -> tuple:
    letters, _, body, of_operands, dropout, has_tiles = key
    return letters, _form(body), of_operands, dropout is None, has_tiles


def _form(body: Expression) -> Expression:
    if body[0] == "number":
        return body[:1]
    return (body[0], *(_form(part) if isinstance(part, tuple) else part for part in body[1:]))


class _Call:
    """A call, apart from its tensors: the kernel, and what gradients need."""

    def __init__(self, kernels: Kernels, statements, layout, traced: TracedScores, scale, steps, has_gradients: bool):
        self.kernels, self.statements, self.layout = kernels, statements, layout
        self.traced, self.scale, self.steps = traced, scale, steps
        self.has_gradients = has_gradients  # else statements make all of them

    def forward(self, operands) -> tuple[torch.Tensor, torch.Tensor]:
        """Output and log of the sums, by one kernel."""
        given = *operands[:3], self.layout.pattern(), *operands[3:]
        kernel, made = self.kernels.attention.run(given, self.steps.get("forward", ()))
        shown = kernel, self.kernels, self.layout, operands, self.steps
        show(lambda: AttentionKernels(*shown) if self.has_gradients else {"forward": kernel})
        return made

    def by_statements(self, q, k, v, operands) -> tuple[torch.Tensor, torch.Tensor]:
        """Output and log of the sums, differentiable as often as one likes."""
        layout = self.layout
        shape = layout.batch, layout.heads
        q, k, v = (x.reshape(shape[0], -1, *x.shape[-2:]) for x in (q, k, v))
        statements = type(self.statements)(self.statements.chosen, q, self.statements.target)

        def changed(values, *where):
            return self.traced.at_entries(values, layout.coordinates(*where), operands)

        changed.any = True
        shares, lse = statements.shares(k, self.scale, changed, None)
        dropout = self.kernels.dropout
        shares = statements.dropped(shares, Dropout(dropout.rate, operands[-1]) if dropout else None)
        output = statements.product(shares, v)
        return output.reshape(*layout.lead, *output.shape[-2:]), lse.reshape(*layout.lead, lse.shape[-1])

    def of_statements(self, needed) -> list[int]:
        """The inputs whose gradient statements make: tables, and on a GPU operands with both coordinates; or all."""
        if not self.has_gradients:
            return [n for n, each in enumerate(needed) if each]
        has_tiles = not self.kernels.turns
        letters = [(n, own) for n, own in enumerate(self.kernels.letters, 3) if needed[n]]
        return [n for n, own in letters if own is None or (has_tiles and {"i", "j"} <= set(own))]

    def gradients_of(self, numbers: list[int], inputs, arrived, of_lse):
        """Those of q, k, v and the operands, by their numbers among these."""
        leaves = [x.detach().requires_grad_(n in numbers) for n, x in enumerate(inputs)]
        with torch.enable_grad():
            output, lse = self.by_statements(*leaves[:3], leaves[3:])
        of_lse = torch.zeros_like(lse) if of_lse is None else of_lse
        return torch.autograd.grad((output, lse), [leaves[n] for n in numbers], (arrived.to(output.dtype), of_lse))

    def gradients_by_kernels(self, inputs, output, lse, arrived, of_lse, needed) -> list:
        """Those that are needed; the others are None."""
        delta = row_products(arrived, output)
        if of_lse is not None:
            delta = delta - torch.where(lse == -math.inf, 0, of_lse)
        lse = lse.nan_to_num(nan=math.nan, posinf=math.inf, neginf=0.0)  # an empty row has no shares
        (q, k, v), operands = inputs[:3], inputs[3:]
        return self.kernels.gradients(self.layout, (q, k, v, lse, arrived, delta), operands, needed, self.steps)


class Fused(torch.autograd.Function):
    """Output and log of the sums by one kernel; gradients make the shares again of that log."""

    @staticmethod
    def forward(ctx, call, q, k, v, *operands):
        output, lse = call.forward((q, k, v, *operands))
        ctx.call = call
        ctx.set_materialize_grads(False)  # the log of the sums has a gradient in few calls
        ctx.save_for_backward(q, k, v, output, lse, *operands)
        return output, lse

    @staticmethod
    def backward(ctx, arrived, of_lse):
        q, k, v, output, lse, *operands = ctx.saved_tensors
        arrived = torch.zeros_like(output) if arrived is None else at_chunks(arrived)
        with outside(q.device.type):
            if torch.is_grad_enabled():
                found = ctx.call.by_statements(q, k, v, operands)
                arrived = arrived.to(found[0].dtype), torch.zeros_like(lse) if of_lse is None else of_lse
                inputs = [x for x, needed in zip((q, k, v, *operands), ctx.needs_input_grad[1:]) if needed]
                made = iter(torch.autograd.grad(found, inputs, arrived, create_graph=True))
                return None, *(next(made) if needed else None for needed in ctx.needs_input_grad[1:])
            call, inputs, needed = ctx.call, [q, k, v, *operands], list(ctx.needs_input_grad[1:])
            own, found = call.of_statements(needed), [None] * len(needed)
            others = [each and n not in own for n, each in enumerate(needed)]
            if any(others):
                found = call.gradients_by_kernels(inputs, output, lse, arrived, of_lse, others)
            made = call.gradients_of(own, inputs, arrived, of_lse) if own else ()
            for number, each in zip(own, made):
                found[number] = each
        return None, *found

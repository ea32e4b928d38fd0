# SPDX-License-Identifier: Apache-2.0
"""Attention in graphs of torch.compile: one operator, which runs what eager calls run, and one for its gradients."""

from __future__ import annotations

import torch

from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.tokens import by_token
from ..runtime.autocast import outside
from ..sparsifiers import PatternRule
from .scores import window_sides

_FORWARD = """(Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor? key_padding, Tensor? sink, Tensor? seed,
Tensor? cu_seqlens, Tensor? cu_seqlens_k, str pattern, float? scale, bool causal, int[]? window, float dropout,
str empty, str target) -> (Tensor, Tensor)"""
_GRADIENTS = """(Tensor arrived, Tensor of_lse, Tensor?[] operands, Tensor?[] others, str pattern, float? scale,
bool causal, int[]? window, float dropout, str empty, str target, bool[] needed) -> Tensor[]"""
_LENT = 6  # operands with a gradient: q, k, v, bias, key_padding, sink
with torch.inference_mode(False):  # who imports it may be in another mode
    _EXCLUDED = torch._C._dispatch_tls_local_exclude_set()
_PLAIN = ("scale", "causal", "window", "dropout", "empty", "target")


def in_graph(q, k, v, pattern, tensors: dict, options: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and log of the sums, as a node of the graph that is traced.

    The graph is of this one pattern or rule: it knows its token, and asks for another graph where that is another.
    """
    given = pattern.pattern if isinstance(pattern, PackedTensor) else pattern
    dropout, window = options["dropout"], options["window"]
    if dropout and tensors["seed"] is None:
        tensors = {**tensors, "seed": torch.randint(2**62, (), device=q.device)}
    elif tensors["seed"] is not None:
        tensors = {**tensors, "seed": torch.as_tensor(tensors["seed"], dtype=torch.int64, device=q.device)}
    plain = {**options, "window": None if window is None else window_sides(window)}
    names = ("bias", "key_padding", "sink", "seed", "cu_seqlens", "cu_seqlens_k")
    return torch.ops.lacis.attention(
        q, k, v, *(tensors[name] for name in names), given._token, *(plain[name] for name in _PLAIN)
    )


def takes(pattern, score, mask) -> bool:
    """A kept pattern or rule, and no functions: what they capture would have to be operands of the graph."""
    kept = isinstance(pattern, (Pattern, PackedTensor, PatternRule))
    return kept and score is None and mask is None


def _run(operands, others, token: str, *plain):
    """The eager call."""
    from .attention import attention

    q, k, v, bias, key_padding, sink = operands
    seed, starts, starts_k = others
    options = dict(zip(_PLAIN, plain))
    if options["window"] is not None:
        options["window"] = tuple(options["window"])
    tensors = {"bias": bias, "key_padding": key_padding, "sink": sink}
    how = {"seed": seed, "cu_seqlens": starts, "cu_seqlens_k": starts_k, "return_lse": True}
    with outside(q.device.type):  # the graph has cast
        return attention(q, k, v, by_token(token), **tensors, **how, **options)


def _as_outside():
    """Inside an operator torch leaves out what autograd and transforms need; here a whole call runs."""
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), _EXCLUDED)


def _attention(*given):
    with _as_outside(), torch.no_grad():
        output, lse = _run(given[:_LENT], given[_LENT:9], *given[9:])
    return output.contiguous(), lse.contiguous()


def _fake(q, k, v, *rest):
    wide = torch.promote_types(q.dtype, torch.float32)
    return q.new_empty(*q.shape[:3], v.shape[3]), q.new_empty(q.shape[:3], dtype=wide)


def _gradients(arrived, of_lse, operands, others, *rest):
    """The call again, with its gradients."""
    *plain, needed = rest
    with _as_outside(), torch.enable_grad():
        leaves = [None if x is None else x.detach().requires_grad_(n) for x, n in zip(operands, needed)]
        found = _run(leaves, others, *plain)
        wanted = [x for x, n in zip(leaves, needed) if n]
        made = torch.autograd.grad(found, wanted, (arrived, of_lse), allow_unused=True)
    return [torch.zeros_like(x) if each is None else each.contiguous() for x, each in zip(wanted, made)]


def _fake_gradients(arrived, of_lse, operands, others, *rest):
    contiguous = torch.contiguous_format
    return [torch.empty_like(x, memory_format=contiguous) for x, n in zip(operands, rest[-1]) if n]


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:9])
    ctx.plain = inputs[9:]


def _backward(ctx, arrived, of_lse):
    saved = ctx.saved_tensors
    needed = list(ctx.needs_input_grad[:_LENT])
    operands, others = list(saved[:_LENT]), list(saved[_LENT:])
    made = iter(torch.ops.lacis.attention_gradients(arrived, of_lse, operands, others, *ctx.plain, needed))
    found = [next(made) if n else None for n in needed]
    return *found, *[None] * (len(others) + len(ctx.plain))


_library = torch.library.Library("lacis", "FRAGMENT")
_library.define("attention" + " ".join(_FORWARD.split("\n")))
_library.define("attention_gradients" + " ".join(_GRADIENTS.split("\n")))
_library.impl("attention", _attention, "CompositeExplicitAutograd")
_library.impl("attention_gradients", _gradients, "CompositeExplicitAutograd")
torch.library.register_fake("lacis::attention", _fake, lib=_library)
torch.library.register_fake("lacis::attention_gradients", _fake_gradients, lib=_library)
torch.library.register_autograd("lacis::attention", _backward, setup_context=_setup, lib=_library)

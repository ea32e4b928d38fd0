# SPDX-License-Identifier: Apache-2.0
"""Attention in graphs of torch.compile: one operator, which runs what eager calls run, and one for its gradients."""

from __future__ import annotations

import torch
from torch.nn.attention.flex_attention import BlockMask, noop_mask

from ..errors import DataError
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.tokens import by_token
from ..runtime.autocast import outside
from ..sparsifiers import PatternRule
from .scores import window_sides

_PLAIN_OF = """str pattern, SymInt[]? sizes, str[] functions, float? scale, bool causal, int[]? window, float dropout,
str empty, str target"""
_FORWARD = f"""(Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor? key_padding, Tensor? sink, Tensor[] captured,
Tensor? seed, Tensor? cu_seqlens, Tensor? cu_seqlens_k, Tensor[] blocks, {_PLAIN_OF}) -> (Tensor, Tensor)"""
_GRADIENTS = f"""(Tensor arrived, Tensor of_lse, Tensor?[] operands, Tensor?[] others, {_PLAIN_OF},
bool[] needed) -> Tensor[]"""
_LENT = 6  # operands with a gradient: q, k, v, bias, key_padding, sink; what functions capture is behind them
_OTHERS = 3  # without: seed, cu_seqlens, cu_seqlens_k; blocks are behind them
with torch.inference_mode(False):  # who imports it may be in another mode
    _EXCLUDED = torch._C._dispatch_tls_local_exclude_set()
_PLAIN = ("scale", "causal", "window", "dropout", "empty", "target")


def in_graph(q, k, v, pattern, tensors: dict, options: dict, functions: dict, steps):
    """Output and log of the sums, as a node of the graph that is traced; None where no graph is but of eager calls.

    The graph is of this one pattern or rule: it knows its token, and asks for another graph where that is another. So
    with functions, whose tensors are operands. What a graph cannot know ends it.
    """
    token, sizes, blocks, in_blocks = _said(pattern)
    captured: list[torch.Tensor] = []
    tokens = _tokens([functions["score"], functions["mask"], in_blocks], captured)
    if steps or token is None or tokens is None:
        if not torch.compiler.is_dynamo_compiling():
            return None
        from .lifted import apart  # which loads dynamo

        return apart(q, k, v, pattern, steps=steps, return_lse=True, **tensors, **options, **functions)
    window, seed = options["window"], tensors["seed"]
    if options["dropout"] and seed is None:
        seed = torch.randint(2**62, (), device=q.device)
    elif seed is not None:
        seed = torch.as_tensor(seed, dtype=torch.int64, device=q.device)
    plain = {**options, "window": None if window is None else window_sides(window)}
    lent = [tensors[name] for name in ("bias", "key_padding", "sink")]
    others = [seed, tensors["cu_seqlens"], tensors["cu_seqlens_k"], blocks]
    return torch.ops.lacis.attention(
        q, k, v, *lent, captured, *others, token, sizes, tokens, *(plain[name] for name in _PLAIN)
    )


def _said(pattern) -> tuple:
    """Its token, and of a BlockMask its sizes, its tensors, and its function; the token is None of what has none."""
    if isinstance(pattern, torch.Tensor):
        return "", None, [pattern], None
    if isinstance(pattern, BlockMask):
        lists = [pattern.kv_num_blocks, pattern.kv_indices]
        lists += [] if pattern.full_kv_indices is None else [pattern.full_kv_num_blocks, pattern.full_kv_indices]
        mask = None if pattern.mask_mod is noop_mask else pattern.mask_mod
        return "", [*pattern.seq_lengths, *pattern.BLOCK_SIZE], lists, mask
    if isinstance(pattern, (Pattern, PackedTensor, PatternRule)):
        kept = pattern.pattern if isinstance(pattern, PackedTensor) else pattern
        return kept._token or None, None, [], None  # one that the graph makes has none
    return None, None, [], None


def _pattern_of(token: str, sizes, blocks, mask):
    if not blocks:
        return by_token(token)
    if sizes is None:
        return blocks[0]
    lists = [*blocks, None, None][:4]
    return BlockMask(tuple(sizes[:2]), *lists, None, None, None, None, tuple(sizes[2:]), mask or noop_mask)


def _tokens(functions: list, captured: list[torch.Tensor]) -> list[str] | None:
    if all(each is None for each in functions):
        return [""] * len(functions)
    from .lifted import lifted

    tokens = [lifted(each, captured, count) for each, count in zip(functions, (5, 4, 4))]
    return None if None in tokens else tokens


def _functions(tokens: list[str], captured: list[torch.Tensor]) -> list:
    if not any(tokens):
        return [None] * len(tokens)
    from .lifted import rebuilt

    tensors = iter(captured)
    return [rebuilt(each, tensors) for each in tokens]


def _run(operands, others, token: str, sizes, functions, *plain):
    """The eager call."""
    from .attention import attention

    q, k, v, bias, key_padding, sink, *captured = operands
    seed, starts, starts_k, *blocks = others
    options = dict(zip(_PLAIN, plain))
    if options["window"] is not None:
        options["window"] = tuple(options["window"])
    score, mask, in_blocks = _functions(functions, captured)
    tensors = {"bias": bias, "key_padding": key_padding, "sink": sink}
    how = {"seed": seed, "cu_seqlens": starts, "cu_seqlens_k": starts_k, "return_lse": True}
    pattern = _pattern_of(token, sizes, blocks, in_blocks)
    with outside(q.device.type):  # the graph has cast
        return attention(q, k, v, pattern, score=score, mask=mask, **tensors, **how, **options)


def _as_outside():
    """Inside an operator torch leaves out what autograd and transforms need; here a whole call runs."""
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), _EXCLUDED)


def _attention(*given):
    lent, captured, others, blocks, plain = _parts(given)
    with _as_outside(), torch.no_grad():
        output, lse = _run([*lent, *captured], [*others, *blocks], *plain)
    return output.contiguous(), lse.contiguous()


def _parts(given) -> tuple:
    """Operands with a gradient, such of functions, operands without, those of the pattern, and all else."""
    behind = _LENT + 1 + _OTHERS
    return given[:_LENT], given[_LENT], given[_LENT + 1 : behind], given[behind], given[behind + 1 :]


def _fake(q, k, v, *rest):
    wide = torch.promote_types(q.dtype, torch.float32)
    return q.new_empty(*q.shape[:3], v.shape[3]), q.new_empty(q.shape[:3], dtype=wide)


def _gradients(arrived, of_lse, operands, others, *rest):
    """The call again, with its gradients."""
    *plain, needed = rest
    with _as_outside(), torch.enable_grad():
        leaves = [_leaf(x, n) for x, n in zip(operands, needed)]
        found = _run(leaves, others, *plain)
        wanted = [x for x, n in zip(leaves, needed) if n]
        made = torch.autograd.grad(found, wanted, (arrived, of_lse), allow_unused=True)
    return [torch.zeros_like(x) if each is None else each.contiguous() for x, each in zip(wanted, made)]


def _leaf(x: torch.Tensor | None, is_needed: bool) -> torch.Tensor | None:
    """One that autograd knows nothing of stays itself, for what was found of its values is kept with it."""
    return x.detach().requires_grad_(is_needed) if is_needed or (x is not None and x.requires_grad) else x


def _fake_gradients(arrived, of_lse, operands, others, *rest):
    contiguous = torch.contiguous_format
    return [torch.empty_like(x, memory_format=contiguous) for x, n in zip(operands, rest[-1]) if n]


def _setup(ctx, inputs, output):
    lent, captured, others, blocks, ctx.plain = _parts(inputs)
    ctx.captured, ctx.blocks = len(captured), len(blocks)
    ctx.save_for_backward(*lent, *captured, *others, *blocks)


def _backward(ctx, arrived, of_lse):
    saved, lent = ctx.saved_tensors, _LENT + ctx.captured
    needed = [*ctx.needs_input_grad[:_LENT], *ctx.needs_input_grad[_LENT]]
    operands, others = list(saved[:lent]), list(saved[lent:])
    made = iter(torch.ops.lacis.attention_gradients(arrived, of_lse, operands, others, *ctx.plain, needed))
    found = [next(made) if n else None for n in needed]
    return *found[:_LENT], found[_LENT:], *[None] * _OTHERS, [None] * ctx.blocks, *[None] * len(ctx.plain)


def _twice(ctx, *arrived):
    raise DataError("attention: a graph has no gradients of gradients; call it outside of torch.compile")


_library = torch.library.Library("lacis", "FRAGMENT")
_library.define("attention" + " ".join(_FORWARD.split("\n")))
_library.define("attention_gradients" + " ".join(_GRADIENTS.split("\n")))
_library.impl("attention", _attention, "CompositeExplicitAutograd")
_library.impl("attention_gradients", _gradients, "CompositeExplicitAutograd")
torch.library.register_fake("lacis::attention", _fake, lib=_library)
torch.library.register_fake("lacis::attention_gradients", _fake_gradients, lib=_library)
torch.library.register_autograd("lacis::attention", _backward, setup_context=_setup, lib=_library)
torch.library.register_autograd("lacis::attention_gradients", _twice, lib=_library)

# SPDX-License-Identifier: Apache-2.0
"""`lacis.merge_attention`: attention on several patterns, as if on their union."""

from __future__ import annotations

import functools
import math

import torch

from ..emit.merge_parts import merge_parts as merge_parts_text
from ..emit.mlir import TYPES
from ..errors import DataError
from ..patterns.transforms import is_transformed
from ..runtime import library
from ..runtime.kernels import compile_on


def merge_attention(parts) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs and logs of sums of `lacis.attention(..., return_lse=True)` on disjoint patterns, as if on all together.

    `parts`: pairs `(output, lse)`, outputs [..., Sq, Dv] and lse [..., Sq] of one shape each, in natural log, as ring
    attention and decoding in pieces have them. Returns such a pair, in the dtypes of the first. A part whose lse is
    -infinity does not count, whatever its output holds; where all are, the output is 0. One kernel on what is stacked;
    differentiable in all of them, twice too.

    >>> o, lse = merge_attention([(torch.ones(1, 2), torch.zeros(1)), (torch.full((1, 2), 3.0), torch.zeros(1))])
    >>> o, lse.exp()
    (tensor([[2., 2.]]), tensor([2.]))

    Raises `DataError` for what are no such pairs, for none, and for parts of different shapes.
    """
    parts = _pairs(parts)
    first, log = parts[0]
    for n, (output, lse) in enumerate(parts):
        if output.shape != first.shape or lse.shape != output.shape[:-1]:
            raise DataError(
                f"merge_attention: part {n} has an output {list(output.shape)} and lse {list(lse.shape)}; the first "
                f"output is {list(first.shape)}, and lse has its axes but the last"
            )
    wide = torch.promote_types(first.dtype, torch.float32)
    same = all(output.dtype == first.dtype for output, _ in parts)
    outputs = torch.stack([output if same else output.to(wide) for output, _ in parts])
    logs = torch.stack([lse.to(wide) for _, lse in parts])
    plain = torch.compiler.is_compiling() or is_transformed() or first.device.type not in ("cpu", "cuda")
    if plain or not outputs.numel() or outputs.dtype not in TYPES:
        merged, lse = _by_statements(outputs, logs)
        return merged.to(first.dtype), lse.to(log.dtype)
    merged, lse = _Merged.apply(outputs.flatten(1, -2), logs.flatten(1), first.dtype)
    return merged.reshape(first.shape), lse.reshape(log.shape).to(log.dtype)


def _pairs(parts) -> list[tuple[torch.Tensor, torch.Tensor]]:
    try:
        found = [(output, lse) for output, lse in parts]
    except (TypeError, ValueError):
        found = []
    if not found:
        raise DataError("merge_attention: pairs (output, lse) are needed, one at least")
    first = found[0][0]
    for n, pair in enumerate(found):
        for name, x in zip(("output", "lse"), pair):
            if not isinstance(x, torch.Tensor) or not x.is_floating_point():
                what = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
                raise DataError(f"merge_attention: {name} of part {n} must be a floating point tensor, not {what}")
            if x.device != first.device:
                raise DataError(
                    f"merge_attention: {name} of part {n} is on {x.device}, the first output on {first.device}"
                )
    if first.ndim < 2:
        raise DataError(f"merge_attention: an output is [..., Sq, Dv], not {list(first.shape)}")
    return found


def merged_parts(outputs: torch.Tensor, logs: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """[n, S, D], in `dtype`, and the logs [n, S] of sums, of parts [n, parts, S, D] and [n, parts, S], in float32 at
    least, by one kernel."""
    key = _key(outputs.dtype, dtype, logs.dtype, _vector(outputs), outputs.device)
    batch, _, rows, width = outputs.shape
    others = [([batch, rows], logs.dtype)]
    with torch.no_grad():
        merged, total = library.chain([outputs, logs], [], [batch, rows, width], key, [], others)
    return merged, total


def _vector(outputs: torch.Tensor) -> int:
    """Elements of a vector, whose number divides a row: 16 bytes of the sums on a GPU."""
    most = 16 if outputs.device.type == "cpu" else 2 if outputs.dtype == torch.float64 else 4
    return math.gcd(outputs.shape[-1], most)


@functools.cache
def _key(given: torch.dtype, made: torch.dtype, wide: torch.dtype, vector: int, device: torch.device) -> str:
    text = merge_parts_text(TYPES[given], TYPES[made], TYPES[wide], vector, device.type != "cpu")
    return compile_on(text, device).key


class _Merged(torch.autograd.Function):
    """[rows, D] and [rows] of [parts, rows, D] and [parts, rows] by one kernel; gradients are those of statements."""

    @staticmethod
    def forward(ctx, outputs, logs, dtype):
        ctx.save_for_backward(outputs, logs)
        ctx.set_materialize_grads(False)
        merged, total = merged_parts(outputs[None], logs[None], dtype)
        return merged[0], total[0]

    @staticmethod
    def backward(ctx, *arrived):
        twice = torch.is_grad_enabled()
        given = ctx.saved_tensors if twice else [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            found = _by_statements(*given)
        asked = [(x, g.to(x.dtype)) for x, g in zip(found, arrived) if g is not None]
        if not asked:
            return None, None, None
        results, gradients = zip(*asked)
        made = torch.autograd.grad(results, given, gradients, create_graph=twice, allow_unused=True)
        return *made, None


def _by_statements(outputs: torch.Tensor, logs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same in the type of the logs, differentiable as often as one likes."""
    top = logs.detach().amax(0)
    top = torch.where(top == -math.inf, 0, top)
    weights = torch.exp(logs - top)
    total = weights.sum(0)
    empty = total == 0
    sound = torch.where(empty, 1, total)
    outputs = torch.where((weights == 0)[..., None], 0, outputs.to(logs.dtype))
    merged = (outputs * (weights / sound)[..., None]).sum(0)
    return merged, torch.where(empty, -math.inf, top + torch.log(sound))

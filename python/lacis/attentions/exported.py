# SPDX-License-Identifier: Apache-2.0
"""Attention in exported programs: its kernel is called by key, and its pattern is a constant."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from ..errors import DataError
from ..nn.watched import show
from ..packing import PackedTensor
from ..patterns import Pattern
from ..runtime import library
from ..sparsifiers import PatternRule
from .fused import one_kernel
from .fused_kernels import Kernels
from .layouts import Layout
from .patterns import choose
from .scores import Scores
from .tiles import on_gpu, room_behind
from .traced_scores import reads_pairs


def exported(q, k, v, pattern, changes: Scores, masks, scale: float, wants_lse: bool, dropout: float) -> torch.Tensor:
    """The output [B, H, Sq, Dv], of one kernel; `masks` come behind those of the pattern.

    Raises `DataError` for what no kernel of one result makes.
    """
    if wants_lse or dropout:
        raise DataError(
            "attention: an exported graph has no place for the log of sums, a sink, empty='nan' or dropout; call it "
            "without, or run the model by torch.compile"
        )
    sizes = [tuple(map(int, x.shape)) for x in (q, k, v)]
    with unset_fake_temporarily(), disable_proxy_modes_tracing(), torch.no_grad():
        like = [torch.empty(size, dtype=q.dtype, device=q.device) for size in sizes]
        chosen = choose(pattern, *like[:2])
        layout = Layout(chosen, *like[:2])
        walked = layout.pattern()
    changes.masks = [*masks, *chosen.masks]
    wide = torch.promote_types(q.dtype, torch.float32)
    has_tiles = on_gpu(q)
    traced = one_kernel(layout, q, k, v, changes, wide)  # which finds the pattern that is kept
    if traced is not None and has_tiles and room_behind(layout.base) and reads_pairs(traced):
        traced = None  # a program keeps no room behind what it makes
    if traced is None:
        raise DataError(
            "attention: an exported graph takes what is one kernel, and this is statement by statement "
            "(docs/attention.md says what one takes); run the model by torch.compile"
        )
    kernels = Kernels(layout.letters, layout.key_letters, scale, traced.body, traced.letters, turns=not has_tiles)
    operands = [x if has_tiles else x.to(wide) for x in (layout.query(q), layout.key(k), layout.key(v))]
    operands += traced.operands
    kernel = kernels.output.compile(*operands[:3], walked, *operands[3:])
    show(lambda: {"exported": kernel})
    shape = [*sizes[0][:-1], sizes[2][-1]]
    arrays = kernel.arrays(walked)
    found = library.einsum(operands, arrays, [*layout.lead, *shape[2:]], kernel.key, list(walked.shape))
    return found.reshape(shape).to(q.dtype)


def require_constant(pattern, starts) -> None:
    """Raise `DataError` for a pattern, or starts of sequences, that a program cannot have as a constant."""
    if starts is not None:
        raise DataError(
            "attention: cu_seqlens has no place in an exported graph, whose masks of positions are constants; give "
            "mask=, which may read a tensor, or run the model by torch.compile"
        )
    if isinstance(pattern, PatternRule) and pattern.blocks is not None:
        raise DataError(
            f"attention: {type(pattern).__name__} follows the queries and keys, and the pattern of an exported graph "
            "is a constant; run the model by torch.compile"
        )
    if not isinstance(pattern, (Pattern, PackedTensor, PatternRule)):
        raise DataError(
            f"attention: the pattern of an exported graph is a lacis.Pattern or a rule, not {type(pattern).__name__}; "
            "give lacis.Given(layout), or a lacis.Pattern that is made before"
        )

# SPDX-License-Identifier: Apache-2.0
"""`lacis.block_mask`: what attention takes as a pattern, for flex_attention."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch

from ..errors import DataError
from ..patterns.structure import Structure
from ..sparsifiers import PatternRule
from .arguments import check_operands
from .patterns import choose


@torch.compiler.disable
def block_mask(q: torch.Tensor, k: torch.Tensor, pattern, *, block: int | tuple[int, int] = 128):
    """A `BlockMask` of flex_attention that keeps what `lacis.attention(q, k, v, pattern)` attends to.

    q [B, H, Sq, D], k [B, Hk, Sk, D] as there: their sizes and device count, for a rule that follows the data their
    values, too. `pattern` is what `lacis.attention` takes. `block` is the side of the blocks, or both, 128 by default
    as in torch. Full and partial blocks are told apart; it is of one batch or one head where all have the same.
    Its `mask_mod` reads a bool tensor of the pattern's stored blocks, or of its entries where these are single, on the
    device of q. To make it, torch looks at every pair of a query and a key; the host waits for the device.

    >>> import lacis
    >>> q = k = torch.randn(1, 4, 200, 16)
    >>> made = block_mask(q, k, lacis.Causal(block=64), block=100)
    >>> made.shape, made.to_dense().tolist(), made.full_kv_num_blocks.tolist()
    ((1, 1, 200, 200), [[[[1, 0], [1, 1]]]], [[[0, 1]]])

    Raises `DataError` for what is no pattern or does not fit, for sizes of 0, and for a pattern that has an entry
    twice, which a mask cannot say. The idea is FlexAttention's, whose `create_block_mask` makes it.
    """
    from torch.nn.attention.flex_attention import create_block_mask

    check_operands(q, k, k)
    if 0 in (*q.shape[:3], k.shape[2]):
        raise DataError(f"block_mask: q {list(q.shape)} and k {list(k.shape)} have no pairs, and torch no mask of none")
    sides = PatternRule.sides(block)
    chosen = choose(pattern, q, k)
    if not chosen.pattern.distinct:
        raise DataError("block_mask: the pattern has an entry twice, which counts twice; a mask can only keep it")
    parts = [_stored(part, *q.shape[:2]) for part in chosen.pattern.parts.values()]

    def kept(b, h, i, j):
        found = functools.reduce(torch.logical_or, [stored(b, h, i, j) for stored in parts])
        return functools.reduce(torch.logical_and, [mask(b, h, i, j) for mask in chosen.masks], found)

    by_batch, by_head = _asks(kept, q.device)
    count = q.shape[0] if by_batch else None, q.shape[1] if by_head else None
    return create_block_mask(kept, *count, q.shape[2], k.shape[2], device=q.device, BLOCK_SIZE=sides)


def _stored(part: Structure, batch: int, heads: int) -> Callable:
    """Does a part of a pattern [B * H, Sq, Sk] or [B, H, Sq, Sk] have an entry at (b, h, i, j)?"""
    whole = part.valid is None and math.prod(part.sides) == math.prod(part.format.tile)
    rows, columns = part.sides if whole else (1, 1)
    same = {digit.axis for level in part.format.batch for digit in level.digits}
    *lead, height, width = part.shape
    lead = [1 if axis in same else size for axis, size in enumerate(lead)]
    table = torch.zeros(*lead, -(-height // rows), -(-width // columns), dtype=torch.bool, device=part.device)
    axes, named = part.slot_axes() if whole else part.pattern_coordinates()
    *above, i, j = (axis[named] for axis in axes)
    table[(*above, i // rows, j // columns)] = True
    if len(lead) == 1:
        table = table[None] if lead == [1] else table.unflatten(0, (batch, heads))

    def stored(b, h, i, j):
        place = [each if size > 1 else 0 for each, size in zip((b, h), table.shape)]
        return table[(*place, i // rows, j // columns)]

    return stored


def _asks(mask: Callable, device) -> tuple[bool, bool]:
    """Does it ask for the batch, and for the head?"""
    from torch.fx.experimental.proxy_tensor import make_fx

    place = torch.zeros(4, 1, dtype=torch.int64, device=device)  # an index without axes would be read on the host
    b, h, *_ = make_fx(mask)(*place.unbind()).graph.nodes
    return bool(b.users), bool(h.users)

# SPDX-License-Identifier: Apache-2.0
"""Few queries over many keys, as in decoding: their keys are cut into parts, which work side by side and are merged.

The queries of all heads of a group are rows of one tile, so that keys and values are read once. (Flash-Decoding, Dao,
Haziza, Massa and Sizov, 2023, cuts keys so.)
"""

from __future__ import annotations

import torch

from ..formats import Format
from ..patterns import Pattern
from ..patterns.structure import Structure
from .kept import kept_of
from .layouts import Layout
from .merge import merged_parts
from .tiles import SIDE, at_chunks, takes_heads
from .traced_scores import trace_scores, with_rooms
from .walks import by_rows

_LEAST = 4  # stored blocks of a part: less would wait for the first ones alone
_TEXT = (
    "(p, i, j) -> (p : dense, i floordiv 64 : dense, j floordiv {0} : compressed, i mod 64 : dense, j mod {0} : dense)"
)


class Parts(Layout):
    """Letters b of the batch, g of the heads of keys, p of parts; i numbers the queries of a group's heads."""

    query_letters = "bg"

    def __init__(self, layout: Layout, count: int):
        self.batch, self.heads, self.rows = layout.batch, layout.heads, layout.rows
        self.columns, self.group = layout.columns, layout.group
        self.base, self.count = layout.base, count
        self.letters, self.key_letters = "bgp", "bg"
        self.sizes = self.batch, self.heads // self.group

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.sizes, self.count, self.tokens, self.columns)

    @property
    def tokens(self) -> int:
        """Queries of all heads of a group."""
        return self.group * self.rows

    def pattern(self, columns: bool = False) -> Pattern:
        return in_parts(by_rows(self.base), self.count, self.tokens).batched(self.sizes, self.key_letters)

    def places(self, where) -> tuple:
        b, g, _, i, j = where
        return b, g if self.group == 1 else g * self.group + i // self.rows, i % self.rows, j

    def query(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.reshape(*self.sizes, self.tokens, tensor.shape[-1])

    def key(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def operand(self, tensor: torch.Tensor, axes: list[int]) -> tuple[torch.Tensor, tuple[str, ...]]:
        """What differs by heads of a group, or by query, has rows of its tokens."""
        tensor, letters = super().operand(tensor, axes)
        if "i" not in letters and (self.group == 1 or "h" not in letters):
            return tensor, tuple(letter.replace("h", "g") for letter in letters)
        behind = len(letters) - letters.index("j") if "j" in letters else 0
        lead = tensor.shape[:1] if "b" in letters else ()
        columns = tensor.shape[tensor.ndim - behind :]
        sizes = [n if letter in letters else 1 for letter, n in (("h", self.heads), ("i", self.rows))]
        tensor = tensor.reshape(*lead, *sizes, *columns).expand(*lead, self.heads, self.rows, *columns)
        tensor = tensor.reshape(*lead, self.heads // self.group, self.tokens, *columns)
        return tensor, (*"b" * len(lead), "g", "i", *"j" * behind)

    def merged_parts(self, outputs: torch.Tensor, lse: torch.Tensor, dtype: torch.dtype):
        """[B, H, Sq, Dv] in `dtype` and [B, H, Sq], of the parts' [B, Hk, parts, rows, Dv] and [B, Hk, parts, rows]."""
        shape = self.batch, self.heads, self.rows
        output, total = merged_parts(outputs.flatten(0, 1), lse.flatten(0, 1), dtype)
        return output.reshape(*shape, output.shape[-1]), total.reshape(shape)


def by_parts(layout: Layout, q, k, v, changes, wide: torch.dtype):
    """The layout of parts, its operands, and what becomes of scores; None where that is for others.

    That is where gradients are asked for, where queries are more than a tile has rows, and of patterns that are not one
    row of whole blocks for all heads.
    """
    asks = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    if asks or not takes_heads(q, v) or layout.group * layout.rows > SIDE or not layout.sizes:
        return None
    base = by_rows(layout.base)
    if not _is_one_row(base, layout.rows):
        return None
    stored = base.part().slots
    # One for each processor: with two the copies of a second one waited, 0.052 for 0.048 ms (docs/attention.md).
    processors = torch.cuda.get_device_properties(q.device).multi_processor_count
    count = max(min(processors // (layout.batch * (layout.heads // layout.group)), stored // _LEAST), 1)
    parts = Parts(layout, count)
    traced = trace_scores(changes, parts, wide)
    if traced is None or torch.is_grad_enabled() and any(x.requires_grad for x in traced.operands):
        return None
    if None in traced.letters:  # rows of the tile without a query would read outside of a table
        return None
    behind = (SIDE - parts.tokens) * parts.columns + -parts.columns % base.part().sides[1]
    operands = with_rooms(traced, behind)
    return parts, traced, [at_chunks(x) for x in (parts.query(q), k, v, *operands)]


def _is_one_row(pattern: Pattern | None, rows: int) -> bool:
    """Is it one list of blocks, of as many rows as there are queries and of multiples of 64 columns?"""
    if pattern is None or pattern.format.buffers != ("pos1", "crd1") or pattern.part().valid is not None:
        return False
    height, width = pattern.part().sides
    return height >= rows and width % SIDE == 0


def in_parts(pattern: Pattern, count: int, rows: int) -> Pattern:
    """The stored blocks of one row in so many parts [count, rows, Sk], of about as many blocks each; kept.

    >>> keys = Pattern.from_mask(torch.ones(64, 256, dtype=torch.bool), "(i, j) -> (i floordiv 64 : dense, "
    ...     "j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)")
    >>> parts = in_parts(keys, 3, 4)
    >>> tuple(parts.shape), parts.part().buffers["pos2"].tolist()
    ((3, 4, 256), [0, 1, 2, 4])
    """
    return kept_of(pattern, (count, rows), lambda: _cut(pattern, count, rows))


def _cut(pattern: Pattern, count: int, rows: int) -> Pattern:
    source = pattern.part()
    crd = source.buffers["crd1"]
    bounds = torch.arange(count + 1, device=crd.device) * source.slots // count
    arrays = {"pos2": bounds.to(source.buffers["pos1"].dtype), "crd2": crd}
    format = Format.parse(_TEXT.format(source.sides[1]))
    shape = count, rows, pattern.shape[1]
    made = Pattern(format, {"": Structure(format, shape, arrays, source.slots, crd.device)})
    made.uneven = (False,) * 3
    return made

# SPDX-License-Identifier: Apache-2.0
"""Queries that stand at the end of the sequence of their keys."""

from __future__ import annotations

import torch

from ...errors import DataError
from .rule import PatternRule


class LastQueries(PatternRule):
    """`rule` where the queries are the last of the sequence that the keys are, as in a step of a generation that keeps
    keys in a cache: Sq queries stand at Sk - Sq and after it, where the rule alone counts them from 0.

    >>> from lacis.sparsifiers import Local
    >>> LastQueries(Local(1)).layout(1, 2, 5, 1)[0].int().tolist()
    [[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]]

    `score` and `mask` of `lacis.attention` count queries from 0 still. Raises `DataError` for what is no rule or
    follows the data, and for more queries than keys.
    """

    pure = property(lambda self: self.rule.pure)

    def __init__(self, rule: PatternRule):
        rule = rule() if isinstance(rule, type) and issubclass(rule, PatternRule) else rule
        if not isinstance(rule, PatternRule) or rule.blocks is not None:
            raise DataError(f"LastQueries: {rule!r} is no rule that goes by where a query and a key stand")
        self.rule, self.block = rule, rule.block

    def layout(self, heads, q, k, block):
        upper, lower = self._rows(q, k, block)
        whole = self.rule.layout(heads, k, k, block)
        return whole[:, upper] | whole[:, lower]

    def mask_of_shape(self, shape, block, device):
        batch, heads, q, k = shape
        rows, columns = self.sides(block)
        # Rules by position do arithmetic alone. Others may take a position as an index; of integers the host looks once
        # whether float32 has them.
        dtype = torch.float32 if self.rule.by_position else torch.int64
        mask, first = self.rule.entry_mask(k, k, block), torch.full((batch,), k - q, dtype=dtype, device=device)
        counted = None if mask is None else lambda b, h, i, j: mask(b, h, i + first[b], j)
        upper, lower = self._rows(q, k, block)
        whole = None if torch.equal(upper, lower) else self.rule.layout(heads, k, k, block)
        if whole is None or torch.equal(whole[:, upper], whole[:, lower]):
            return counted
        # A block of queries reaches into two of the sequence, which keep other keys.
        kept = whole[:, torch.arange(k - q, k) // rows].expand(heads, -1, -1).contiguous().to(device)
        inside = lambda b, h, i, j: kept[h, i, j // columns]
        return inside if counted is None else lambda b, h, i, j: counted(b, h, i, j) & inside(b, h, i, j)

    def _rows(self, q: int, k: int, block) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of blocks of the whole sequence that blocks of queries begin and end in."""
        if q > k:
            raise DataError(f"LastQueries: {q} queries are not the last of {k}")
        rows, _ = self.sides(block)
        first = torch.arange(k - q, k, rows)
        return first // rows, (first + rows - 1).clamp(max=k - 1) // rows

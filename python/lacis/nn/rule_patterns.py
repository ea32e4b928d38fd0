# SPDX-License-Identifier: Apache-2.0
"""The patterns of a module's rule, in the blocks and the format of its schedule."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..formats import Bsr, Format
from ..patterns import Pattern
from ..patterns.recent import RecentPatterns
from ..sparsifiers import LastQueries, PatternRule
from .standing import NOT_LAST, Standing


class RulePatterns:
    """What calls of attention are given: the rule itself, or, where a format stores it otherwise, its entries."""

    def __init__(self, rule: PatternRule, format: Format, block, refuse: Callable):
        self._rule, self._format, self._block, self._refuse = rule, format, block, refuse
        self._last = LastQueries(rule) if rule.by_position else None
        # torch.compile before 2.13 cannot compare formats in a forward pass, so it is known here.
        self._is_as_made = rule.blocks is not None or format == Bsr(*block)
        self._kept: RecentPatterns[Pattern] = RecentPatterns()

    def of(self, q: torch.Tensor, k: torch.Tensor, standing=Standing.UNSAID) -> PatternRule | Pattern:
        """That of queries [B, H, Sq, D] and keys [B, Hk, Sk, D]."""
        rule = self._rule
        if standing is Standing.ELSEWHERE and (rule.by_position or rule.blocks or isinstance(rule, LastQueries)):
            self._refuse(NOT_LAST.format(q.shape[2], k.shape[2], rule))
        if rule.by_position and q.shape[2] < k.shape[2]:
            if standing is not Standing.LAST:
                self._refuse(
                    f"{q.shape[2]} queries meet {k.shape[2]} keys, and {rule} counts both from 0; where the queries "
                    "are the last of one sequence, as with a cache of keys, take lacis.LastQueries of it, for "
                    "attention to another sequence lacis.Given(mask) or a rule of your own"
                )
            rule = self._last
        if self._is_as_made:
            return rule
        shape = (1, q.shape[1], q.shape[2], k.shape[2])
        return self._kept.found((rule, *shape, q.device), q.device, lambda: self._stored(rule, shape, q.device))

    def _stored(self, rule: PatternRule, shape, device) -> Pattern:
        mask = self._entries(rule, shape).to(device)
        format = self._format if len(mask) == 1 else self._format.under("h")
        return Pattern.from_mask(mask[0] if len(mask) == 1 else mask, format)

    def _entries(self, rule: PatternRule, shape: tuple[int, int, int, int]) -> torch.Tensor:
        """bool [H | 1, Sq, Sk]: the entries of the rule's blocks that its mask leaves."""
        _, heads, q, k = shape
        layout = rule.layout(heads, q, k, self._block)
        mask = layout.repeat_interleave(self._block[0], 1).repeat_interleave(self._block[1], 2)[:, :q, :k]
        function = rule.mask_of_shape(shape, self._block, mask.device) or rule.entry_mask(q, k, self._block)
        if function is None:
            return mask
        h, i, j = mask.nonzero(as_tuple=True)
        kept = torch.vmap(function)(torch.zeros_like(h), h, i, j) if len(h) else h.bool()
        return torch.zeros_like(mask).index_put((h, i, j), kept)

    def __getstate__(self):
        return {**self.__dict__, "_kept": RecentPatterns()}

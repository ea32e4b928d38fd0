# SPDX-License-Identifier: Apache-2.0
"""Handles of modules that attend: `s["path"]`, whose pattern a rule says."""

from __future__ import annotations

from ..errors import ScheduleError
from ..sparsifiers import PatternRule
from .verbs import SiteVerbs
from .site import Site

_VERBS = ("sparsify", "block", "set_format", "score")


class ModuleSite(Site):
    """A module and its verbs; blocks have the side of its rule where nothing says another."""

    @property
    def default_block(self) -> tuple[int, ...] | None:
        return None if self.sparsifier is None else self.sparsifier.sides(self.sparsifier.block)


class Module(SiteVerbs):
    """A module in whose forward `F.scaled_dot_product_attention` or `flex_attention` is called; it runs on a pattern.

    softmax(q kᵀ) v   -->   the same over the entries of a rule, s["path"].sparsify(lacis.BigBird())...

    The rule says which blocks exist, the format how scores are stored; `score` changes them. Verbs of loops say how the
    loops of its kernel run, with the letters b, h, i, j, d and e, as `s["path"].pipeline("j0", 5)`.
    """

    def __init__(self, schedule, name: str):
        self._schedule = schedule
        self.name = name

    @property
    def site(self) -> Site:
        """Where its verbs are recorded."""
        return self._schedule.module(self.name)

    @property
    def kernels(self) -> dict:
        """Those of its last call by role: `forward`, `grad_query`, `grad_key_value`."""
        return self._schedule.engine.attention_kernels(self.name)

    def _trial(self, step) -> None:
        self._schedule.require_open(step)
        if step.mnemonic not in _VERBS and not step.of_loops:
            raise NotImplementedError(
                f"'{self.name}': '{step.mnemonic}' of a module is not built yet; it takes {', '.join(_VERBS)}, and "
                "verbs of loops"
            )
        if step.mnemonic == "sparsify" and not isinstance(step.sparsifier, PatternRule):
            raise ScheduleError(
                f"sparsify: '{self.name}' is a module, which takes a rule of attention like lacis.BigBird(), not "
                f"'{type(step.sparsifier).__name__}'; a parameter takes that",
                location=step.location,
            )
        self.site.trial(step)

    def __repr__(self) -> str:
        return f's["{self.name}"]' + "".join(f".{step.describe()}" for step in self.steps)

# SPDX-License-Identifier: Apache-2.0
"""Handles of modules that attend: `s["path"]`, whose pattern a rule says."""

from __future__ import annotations

from ..errors import ScheduleError
from ..sparsifiers import PatternRule
from .site import Site
from .steps import Step
from .verbs import SiteVerbs, Verbs

ROLES = {"query": "grad_query", "key": "grad_key_value"}
"""The kernels of gradients, by the operand that is named for them; values have theirs of that of keys."""
_VERBS = ("sparsify", "block", "set_format", "score")


class ModuleSite(Site):
    """A module and its verbs; blocks have the side of its rule where nothing says another."""

    @property
    def default_block(self) -> tuple[int, ...] | None:
        return None if self.sparsifier is None else self.sparsifier.sides(self.sparsifier.block)

    @property
    def kernel_steps(self) -> dict[str, tuple[Step, ...]]:
        """Those of the kernels of gradients, by role."""
        return {ROLES[key.rpartition(":")[2]]: tuple(steps) for key, steps in self.gradients.items()}


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


class ModuleOperand(Verbs):
    """What a module attends with, `s["path:query"]` or `s["path:key"]`: its gradient has a kernel of its own."""

    def __init__(self, schedule, name: str):
        self._schedule, self.name = schedule, name
        path, _, operand = name.partition(":")
        if operand not in ROLES:
            raise ScheduleError(f"'{name}': one kernel makes the gradients of keys and values; it is '{path}:key'")

    @property
    def grad(self) -> ModuleGradient:
        """The kernel of its gradient; that of keys makes the gradient of values, too."""
        return ModuleGradient(self._schedule, self.name)

    def _take(self, step) -> None:
        path = self.name.partition(":")[0]
        raise ScheduleError(
            f"{step.mnemonic}: '{self.name}' is an operand of attention, which takes no verbs; say it of the module, "
            f's["{path}"], or of the kernel of the gradient, s["{self.name}"].grad',
            location=step.location,
        )


class ModuleGradient(Verbs):
    """The kernel of a gradient of a module's attention; its verbs are the steps of its loops.

    Of queries it walks the rows of the pattern: its loop over stored blocks is `j0`; of keys and values it walks the
    columns, and has `i0`.

    >>> import lacis, torch
    >>> s = lacis.create_schedule(torch.nn.TransformerEncoderLayer(64, 2, 64, batch_first=True))
    >>> s["self_attn:query"].grad.unroll("j0", 2)
    s["self_attn:query"].grad.unroll("j0", 2)
    """

    def __init__(self, schedule, name: str):
        self._schedule, self.name = schedule, name
        self._path, _, self._operand = name.partition(":")

    @property
    def steps(self) -> tuple:
        """The records, in order."""
        return tuple(self._schedule.module(self._path).gradients.get(self.name, ()))

    @property
    def kernel(self):
        """That of the module's last call."""
        return self._schedule.engine.attention_kernels(self._path)[ROLES[self._operand]]

    def _trial(self, step) -> None:
        self._schedule.require_open(step)
        if not step.of_loops:
            raise ScheduleError(
                f"{step.mnemonic}: '{self.name}.grad' has the entries of its module's pattern, and takes verbs of "
                f'loops; say it of the module, s["{self._path}"]',
                location=step.location,
            )
        step.check(list(self.steps))

    def _take(self, step) -> None:
        self._trial(step)
        self._schedule.module(self._path).gradients.setdefault(self.name, []).append(step)

    def __repr__(self) -> str:
        return f's["{self.name}"].grad' + "".join(f".{step.describe()}" for step in self.steps)

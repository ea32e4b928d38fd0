# SPDX-License-Identifier: Apache-2.0
"""A site: one parameter of the model, and the verbs recorded for it."""

from __future__ import annotations

import dataclasses
import math

from ..errors import FormatError, ScheduleError
from ..formats import Format, Sum, compose, decompose
from .steps import Step


@dataclasses.dataclass
class Site:
    """`names` are all paths of the parameter (more than one when it is tied), the first is its name."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    steps: list[Step] = dataclasses.field(default_factory=list)
    gradients: dict[str, list[Step]] = dataclasses.field(default_factory=dict)  # by "values", or "path:in0"
    solved: tuple | None = None  # mask and tensor, of a sparsifier that was calibrated

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def axes(self) -> tuple[int, ...]:
        """The sizes that the verbs speak of: of a tensor of more axes, blocks and formats of two mean the matrix
        [first, all others]."""
        if len(self.shape) > 2 and self._of_matrices():
            return self.shape[0], math.prod(self.shape[1:])
        return self.shape

    def _of_matrices(self) -> bool:
        if self.blocks:
            return len(self.blocks[0]) == 2
        formats = [step.format for step in self.of("set_format") if step.axis is None]
        formats += [part for step in self.of("decompose") for _, part in step.parts]
        formats = [part for each in formats for part in getattr(each, "parts", {"": each}).values()]
        ranks = {2 if getattr(each, "sizes", ()) is None else each.rank for each in formats if not each.any_rank}
        return ranks == {2}

    @property
    def stages(self) -> list[Site]:
        """Of an activation, the verbs before each further `sparsify` behind a format, and those from it on.

        A parameter has one stage: another `sparsify` contradicts the first.
        """
        cut: list[list[Step]] = [[]]
        for step in self.steps:
            known = {each.mnemonic for each in cut[-1]}
            if step.mnemonic == "sparsify" and {"sparsify", "set_format"} <= known:
                cut.append([])
            cut[-1].append(step)
        return [dataclasses.replace(self, steps=steps) for steps in cut]

    def trial(self, step: Step) -> None:
        """Raise when `step` cannot be recorded here; records nothing."""
        step.check(self.steps)
        trial = dataclasses.replace(self, steps=[*self.steps, step])
        try:
            compose(len(trial.axes), trial.blocks, [])
            if ("set_format" in trial or "decompose" in trial) and not trial._waits_for_block():
                trial.format()
        except (FormatError, ScheduleError) as error:
            raise type(error)(f"{step.mnemonic}: {error.message}", location=step.location) from None

    def record(self, step: Step) -> None:
        self.steps.append(step)

    def of(self, mnemonic: str) -> list[Step]:
        """The steps with this verb, in order."""
        return [step for step in self.steps if step.mnemonic == mnemonic]

    @property
    def loop_steps(self) -> tuple[Step, ...]:
        """The steps that say how the loops of the kernel run."""
        return tuple(step for step in self.steps if step.of_loops)

    @property
    def location(self) -> tuple[str, int] | None:
        """The user's line that gives the format, else the first one."""
        steps = self.of("set_format") + self.of("decompose") + self.steps
        return steps[0].location if steps else None

    @property
    def sparsifier(self):
        steps = self.of("sparsify")
        return steps[0].sparsifier if steps else None

    @property
    def gradient_format(self) -> Format | Sum | None:
        """How the gradient of a tensor that stays dense is stored; None where nothing was said."""
        steps = self.gradients.get("values", ())
        return next((step.format for step in steps if step.mnemonic == "set_format"), None)

    @property
    def is_packed(self) -> bool:
        """Is the tensor itself stored, and not its gradient alone?"""
        return bool(self.steps) or self.gradient_format is None

    @property
    def gradient_sparsifier(self):
        """What chooses among the entries of the gradient; None where all are kept."""
        steps = self.gradients.get("values", ())
        chosen = next((step.sparsifier for step in steps if step.mnemonic == "sparsify"), None)
        return chosen if chosen is None or self.block_size is None else chosen.with_block(self.block_size)

    @property
    def master(self) -> tuple[str, float] | None:
        """How the dense Parameter trains, where it stays, and its decay."""
        step = next((step for step in self.of("sparsify") if step.master is not None), None)
        return None if step is None else (step.master, step.decay)

    @property
    def blocks(self) -> list[tuple[int, ...]]:
        return [step.sizes for step in self.of("block")]

    @property
    def block_size(self) -> tuple[int, ...] | None:
        """The outermost blocks, from `.block()` or from the format itself; None without any."""
        if self.blocks:
            return self.blocks[0]
        for format in self._named_formats():
            sizes = getattr(format, "sizes", None)
            tile = sizes or (format.tile if isinstance(format, Format) else ())
            if len(tile) == len(self.axes):
                return tuple(tile)
        return None

    def _named_formats(self) -> list:
        named = [step.format for step in self.of("set_format")]
        for step in self.of("decompose"):
            named += [part for _, part in step.parts]
        return [f for f in named if not (hasattr(f, "sizes") and f.sizes is None)]

    def _waits_for_block(self) -> bool:
        """Does a recorded format need a `.block()` that may still come?"""
        axes = [a for step in self.of("set_format") for a in step.axis or ()]
        formats = [step.format for step in self.of("set_format")]
        formats += [part for step in self.of("decompose") for _, part in step.parts]
        open_sizes = any(hasattr(f, "sizes") and f.sizes is None for f in formats)
        rank = len(self.axes)
        beyond = any(a >= rank * (1 + len(self.blocks)) for a in axes)
        return (open_sizes and not self.blocks) or beyond

    @property
    def default_block(self) -> tuple[int, ...] | None:
        """The sides of blocks where a format needs some and no verb says them."""
        return None

    def format(self) -> Format | Sum:
        """What the verbs say together; raises `FormatError` when they do not fit each other."""
        rank, blocks = len(self.axes), self.blocks
        if self.default_block is not None and self._waits_for_block():
            blocks = [self.default_block]
        for step in self.of("decompose"):
            parts = {name: _composed(rank, blocks, [(part, None)]) for name, part in step.parts}
            return decompose(**step.with_rules(parts))
        formats = [(step.format, step.axis) for step in self.of("set_format")]
        if not formats:
            raise ScheduleError(
                f"'{self.name}' has no format; call set_format() or decompose() on it", location=self.location
            )
        if len(formats) == 1 and isinstance(formats[0][0], Sum):
            if blocks:
                raise FormatError("a sum cannot be nested; decompose() the blocked tensor, and give its parts formats")
            return formats[0][0].for_shape(self.shape)
        return _composed(rank, blocks, formats)

    @property
    def label(self) -> str:
        """The format in the words of the schedule, short enough for a table."""
        words = [step.describe() for step in self.of("block")]
        words += [type(step.format).__name__ for step in self.of("set_format")]
        words += [f"{name}={type(part).__name__}" for step in self.of("decompose") for name, part in step.parts]
        return " ".join(words)

    def __contains__(self, mnemonic: str) -> bool:
        return any(step.mnemonic == mnemonic for step in self.steps)


def _composed(rank, blocks, formats) -> Format:
    if not blocks and len(formats) == 1 and formats[0][1] is None:
        format = formats[0][0].for_rank(rank)
        return format if format.levels else None  # a block format without sizes says so here
    return compose(rank, blocks, formats)

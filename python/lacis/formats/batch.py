# SPDX-License-Identifier: Apache-2.0
"""Formats below levels of a batch, and what such levels refuse to be."""

from __future__ import annotations

from ..errors import FormatError
from .digit import Digit
from .kinds.batch import Batch
from .kinds.full import Full
from .kinds.implicit import Implicit
from .level import Level


def under(format, letters, shared: bool):
    """The format below one level for each letter: those of a batch where the letters share its pattern, else dense."""
    if format.bindings and not shared:
        raise FormatError(f"a format with bindings has no arrays for each head, as '{format}'; let heads share one")
    more, extent = len(letters), Batch() if shared else Full()
    added = [Level((Digit(axis),), extent, Implicit()) for axis in range(more)]
    names = (*letters, *format.names)
    axes = (*letters, *format.axes) if len(set(names)) == len(names) else _other_names(format, more)
    multiset = format.multiset if shared else format.keeps_duplicates
    return _moved(format, added, format.levels, axes, more, multiset)


def below(format, count: int):
    """The format of the levels below the first `count`, which are a batch of one axis each: what `under` was given."""
    return _moved(format, [], format.levels[count:], format.axes[count:], -count, format.multiset)


def _moved(format, added, levels, axes, by: int, multiset: bool):
    """The levels of a format whose axes come `by` later, below others; with its bindings."""
    move = lambda name: name + by
    digits = lambda level: tuple(Digit(move(d.axis), d.div, d.mod) for d in level.digits)
    moved = [Level(digits(level), level.extent, level.coordinate) for level in levels]
    bindings = [binding.renamed(move) for binding in format.bindings]
    return format.of([*added, *moved], axes, bindings, multiset, format.layout)


def _other_names(format, more: int) -> tuple[str, ...]:
    """Names for the axes that no binding has."""
    bound = {binding.name for binding in format.bindings}
    free = [name for name in "ijklmnopqrstuvwxyzabcdefgh" if name not in bound]
    return tuple(free[: more + format.rank])


def verify_batch(axes, levels, names) -> None:
    """A batch is of values alone: whole axes, one a level, above all positions. Raises `FormatError`."""
    for number, level in enumerate(levels):
        if not level.extent.shares:
            continue
        text = level.text(names)
        if number and not levels[number - 1].extent.shares:
            raise FormatError(f"'{text}' must come first: the levels below it are the pattern that its values share")
        if any(digit.axis >= len(axes) or digit.div != 1 or digit.mod for digit in level.digits):
            raise FormatError(f"'{text}' is of whole axes, neither of their blocks nor of what is bound to them")
        if len(level.digits) != 1:
            raise FormatError(f"'{text}' is of several axes: write a level 'batch' for each of them")
        if number + 1 == len(levels):
            raise FormatError(f"'{text}' has no level below it, so its values share no pattern")


def verify_parts(parts, predicates) -> None:
    """The parts of a sum have values for one batch, of which no rule tells coordinates apart. Raises `FormatError`."""
    first, batch = next((name, part.batch) for name, part in parts.items())
    for name, part in parts.items():
        if part.batch != batch:
            raise FormatError(
                f"part '{name}' has values for another batch than part '{first}'; begin all parts with the same levels "
                "of kind 'batch'"
            )
    shared = {digit.axis for level in batch for digit in level.digits}
    for name, tests in predicates.items():
        for digit in (digit for test in tests for digit in getattr(test, "digits", ())):
            if digit.axis in shared:
                raise FormatError(
                    f"the rule of part '{name}' looks at '{parts[first].axes[digit.axis]}', whose coordinates share "
                    "one pattern"
                )

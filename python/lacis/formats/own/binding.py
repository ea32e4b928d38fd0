# SPDX-License-Identifier: Apache-2.0
"""Bindings of the user's: a coordinate computed from axes, and back, by a class."""

from __future__ import annotations

import dataclasses
import re

import torch

from ...errors import FormatError, format_location, user_location
from ..bindings import Binding
from .eager import Eager
from .language import as_tuple, running
from .symbol import INDEX
from .traced import Code, trace

BINDINGS: dict[str, type] = {}


@dataclasses.dataclass(frozen=True)
class Mapped(Binding):
    """`z = @morton(i, j)`: what a class that `lacis.binding` decorated makes of axes (or earlier bindings)."""

    name: str = dataclasses.field(compare=False)
    symbol: str = ""
    operands: tuple[int, ...] = ()

    kind = "mapped"

    @property
    def definition(self):
        """An object of the class. Raises `FormatError` where there is none of that name."""
        if self.symbol not in BINDINGS:
            raise FormatError(f"binding '{self.symbol}' has no code yet: decorate its class with lacis.binding")
        return BINDINGS[self.symbol]()

    def text(self, names) -> str:
        return f"{self.name} = {self.symbol}({', '.join(names[n] for n in self.operands)})"

    def _run(self, method: str, *arguments) -> tuple[torch.Tensor, ...]:
        function, machine = getattr(self.definition, method), Eager({}, 0, arguments[0].device)
        with running(machine):
            answers = as_tuple(function(*arguments))
        return tuple(machine.tensor(answer).long().expand(arguments[0].shape) for answer in answers)

    def size(self, sizes):
        size = self.definition.size(*(sizes[n] for n in self.operands))
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise FormatError(f"binding '{self.symbol}', 'size': a number of coordinates is needed, not {size!r}")
        return size

    def of(self, coordinates, sizes):
        (own,) = self._run("forward", *(torch.as_tensor(coordinates[n]) for n in self.operands))
        size = self.size(sizes)
        bad = (own < 0) | (own >= size)
        if bool(bad.any()):
            value = int(own[bad][0])
            raise FormatError(f"binding '{self.symbol}', 'forward': {value} is outside of its {size} coordinates")
        self.check_sizes(sizes)
        return own

    def check_sizes(self, sizes) -> None:
        """Of one axis in another order kernels write each row once, at the coordinate that `inverse` gives."""
        size = self.size(sizes)
        if len(self.operands) != 1 or size != sizes[self.operands[0]]:
            return
        (rows,) = self._run("inverse", torch.arange(size))
        if not torch.equal(rows.sort().values, torch.arange(size)):
            what = f"its {size} coordinates do not give each of 0 to {size - 1} once"
            raise FormatError(f"binding '{self.symbol}', 'inverse': {what}, as those of one axis in another order must")

    def determines(self, known):
        return self.operands

    def solve(self, name, coordinates, own, sizes, array=None):
        found = self._run("inverse", own)
        if len(found) != len(self.operands):
            raise FormatError(
                f"binding '{self.symbol}', 'inverse': answers {len(found)} coordinates, not {len(self.operands)}"
            )
        return found[self.operands.index(name)]

    def renamed(self, place) -> "Mapped":
        """The same over other names: `place` maps old numbers to new ones."""
        return dataclasses.replace(self, operands=tuple(map(place, self.operands)))


def binding(cls=None, *, name: str | None = None):
    """Class decorator: `let z = @name(i, j)` becomes known to formats, by default the class's name in small letters.

    `forward(*axes)` gives the coordinate of tensors int64 [n], `inverse(z)` the axes again, and `size(*sizes)` how many
    coordinates there are. The class gets `of(*axes)`, the axis of a format. Where `inverse` runs on symbols too, as
    methods of level kinds do, kernels find the axes by its code; else they walk the companion index. Raises
    `FormatError` for a class without these methods, and for a name that another one has.

    >>> @binding(name="swapped")
    ... class Swapped:
    ...     def forward(self, i, j): return j * 8 + i
    ...     def inverse(self, z): return z % 8, z // 8
    ...     def size(self, rows, columns): return 8 * columns
    """
    if cls is None:
        return lambda decorated: binding(decorated, name=name)
    missing = [m for m in ("forward", "inverse", "size") if not callable(getattr(cls, m, None))]
    if not isinstance(cls, type) or missing:
        raise FormatError(f"binding: {cls!r} is a class with methods forward, inverse and size")
    symbol = "@" + (name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower())
    known = BINDINGS.get(symbol)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        where = format_location(known._location)
        raise FormatError(f"binding: there is another '{symbol}' ({where}); give this one its own: name=...")
    cls._location = user_location()
    cls.of = staticmethod(lambda *axes: _axis_of(symbol, axes))
    BINDINGS[symbol] = cls
    return cls


def binding_texts(format: str) -> list[str]:
    """The operations that define the bindings that the text of a format names, of those that have code."""
    names = dict.fromkeys(re.findall(r"@[A-Za-z_][\w$.]*(?=\()", format))
    return [text for name in names if name in BINDINGS and (text := _text(name))]


def _text(symbol: str) -> str:
    """The operation `lacis.binding`, made once."""
    cls = BINDINGS[symbol]
    if "_code" not in vars(cls):
        cls._code = _traced(symbol, cls())
    return cls._code


def _traced(symbol: str, own) -> str:
    """The text of the operation; empty where `inverse` is for tensors alone."""
    try:
        lines, taken, answers = trace(f"binding '{symbol}', 'inverse'", 1, lambda code, z: own.inverse(z))
    except (FormatError, TypeError, AttributeError):
        return ""
    if any(answer.type != INDEX for answer in answers):
        return ""
    same = _same_axis(own, len(answers))
    head = f"lacis.binding {symbol}{'' if same is None else f' same {same}'} inverse({taken[0].name}) {{"
    values, types = ", ".join(answer.name for answer in answers), ", ".join([INDEX] * len(answers))
    return "\n".join([head, *lines, f"  lacis.answer {values} : {types}", "}"])


def _same_axis(own, axes: int) -> int | None:
    """The axis whose size `size` answers as it is, or none."""
    code = Code("size")
    sizes = [code.fresh() for _ in range(axes)]
    try:
        answer = own.size(*sizes)
    except (FormatError, TypeError, AttributeError):
        return None
    return next((number for number, size in enumerate(sizes) if size is answer), None)


def _axis_of(symbol: str, axes):
    from ..axes import bound, whole

    return bound(axes[0], "z", Mapped("z", symbol, tuple(whole(axis, f"'{symbol}'") for axis in axes)))

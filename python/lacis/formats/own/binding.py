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
        return own

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
    coordinates there are. The class gets `of(*axes)`, the axis of a format. Kernels walk the companion index of such a
    format. Raises `FormatError` for a class without these methods, and for a name that another one has.

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


def _axis_of(symbol: str, axes):
    from ..axes import bound, whole

    return bound(axes[0], "z", Mapped("z", symbol, tuple(whole(axis, f"'{symbol}'") for axis in axes)))

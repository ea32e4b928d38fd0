# SPDX-License-Identifier: Apache-2.0
"""A storage format: an ordered list of levels over the digits of a tensor's axes."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

from ..errors import FormatError
from .axes import fuse
from .batch import under
from .bindings import sizes_of
from .digit import Digit
from .level import Level
from .verify import verify

AXIS_NAMES = "ijklmnopqrstuvwxyzabcdefgh"


class _Built(NamedTuple):
    """What a format says, and what follows from it: packing asks for it hundreds of times."""

    axes: tuple[str, ...]
    levels: tuple[Level, ...]
    bindings: tuple
    multiset: bool
    layout: str | None
    prefix: tuple[Level, ...]
    batch: tuple[Level, ...]
    names: tuple[str, ...]
    tile: tuple[int, ...]


class Format:
    """Base of all formats. A format of your own names the levels with the verbs of `lacis.iter`:

    >>> import lacis.formats as lacis
    >>> class Ellpack(lacis.Format):
    ...     def __init__(self):
    ...         with lacis.iter(dim=2) as (I, J):
    ...             J.compress(coordinate=True).pack()
    ...             self.indices = [I, J]
    >>> print(Ellpack())
    #lacis.format<(i, j) -> (i : dense, j : packed<?>)>
    >>> Ellpack() == lacis.Format.parse("(i, j) -> (i : dense, j : packed<?>)")
    True

    Two formats are equal when their levels are; the class and the names of the axes do not count.
    """

    indices: list = []
    _built: _Built | None = None

    @classmethod
    def of(cls, levels, axes=None, bindings=(), multiset=False, layout=None) -> "Format":
        """A format from its levels. `axes` are names (i, j, ... when left out)."""
        self = Format.__new__(Format)
        if axes is None:
            axes = AXIS_NAMES[: 1 + max(d.axis for level in levels for d in level.digits)]
        self._build(tuple(axes), tuple(levels), tuple(bindings), multiset, layout)
        return self

    @staticmethod
    def parse(text: str):
        """The format (or sum) with this text; see `lacis.formats.text`. Raises `FormatError`."""
        from .text import parse

        return parse(text)

    def _build(self, axes, levels, bindings=(), multiset=False, layout=None):
        verify(axes, levels, bindings)
        inner = () if bindings else itertools.takewhile(lambda level: level.is_static, reversed(levels))
        above = len(levels) - sum(1 for _ in inner)
        tile = tuple(level.size(()) for level in levels[above:])
        batch = tuple(itertools.takewhile(lambda level: level.extent.shares, levels))
        names = (*axes, *(binding.name for binding in bindings))
        self._built = _Built(axes, levels, bindings, bool(multiset), layout, levels[:above], batch, names, tile)

    def _parts(self) -> _Built:
        if self._built is None:
            if not self.indices:
                raise FormatError(f"format '{type(self).__name__}' has no levels; set self.indices in its __init__")
            nodes = [fuse(*node) if isinstance(node, (tuple, list)) else node for node in self.indices]
            levels = tuple(node.level() for node in nodes)
            self._build(tuple(AXIS_NAMES[: nodes[0].rank]), levels, tuple(nodes[0].bindings))
        return self._built

    @property
    def axes(self) -> tuple[str, ...]:
        return self._parts().axes

    @property
    def levels(self) -> tuple[Level, ...]:
        return self._parts().levels

    @property
    def bindings(self) -> tuple:
        return self._parts().bindings

    @property
    def multiset(self) -> bool:
        return self._parts().multiset

    @property
    def layout(self) -> str | None:
        return self._parts().layout

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """What digits refer to: the axes, then the bindings."""
        return self._parts().names

    def name_sizes(self, shape) -> tuple[int, ...]:
        """The sizes of all that digits refer to, the axes and the bindings."""
        return sizes_of(self.bindings, shape)

    @functools.cached_property
    def text(self) -> str:
        """The dialect's text; `str(format)` is the same."""
        from .text import print_format

        return print_format(self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Format.parse({self.text!r})"

    def _key(self):
        built = self._parts()
        return len(built.axes), built.levels, built.bindings, built.multiset, built.layout

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, Format) else NotImplemented

    def __hash__(self):
        return hash(self._key())

    @property
    def tile_levels(self) -> int:
        """How many levels at the end are dimensions of a stored block; none where bindings count single coordinates."""
        return len(self.levels) - len(self.prefix)

    @property
    def batch(self) -> tuple[Level, ...]:
        """The first levels, where values alone have their coordinates."""
        return self._parts().batch

    @property
    def prefix(self) -> tuple[Level, ...]:
        """The levels above the stored blocks: those that have slots."""
        return self._parts().prefix

    @property
    def tile(self) -> tuple[int, ...]:
        """The trailing dense extents: the shape of a stored block."""
        return self._parts().tile

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of the stored arrays, in the order that kernels take them.

        >>> Format.parse("(i, j) -> (i : dense, j : compressed)").buffers
        ('pos1', 'crd1')
        """
        own = [f"{name}{n}" for n, level in enumerate(self.levels) for name in level.buffers()]
        return (*own, *(name for name in self.binding_arrays if name is not None))

    @property
    def binding_arrays(self) -> tuple[str | None, ...]:
        """For each binding the name of the array that it stores, with the number of its first level; None for none."""
        first = lambda axis: next(n for n, level in enumerate(self.levels) if any(d.axis == axis for d in level.digits))
        return tuple(
            None if binding.array is None else f"{binding.array}{first(self.rank + n)}"
            for n, binding in enumerate(self.bindings)
        )

    @property
    def keeps_duplicates(self) -> bool:
        """Entries with equal coordinates each keep a slot: COO, and what says `multiset`."""
        first, *rest = self.levels[len(self.batch) :]
        return self.multiset or (not first.coordinate.unique and all(level.extent.follows for level in rest))

    @property
    def capacity(self) -> int | None:
        """The most entries that a fibre takes, when the text gives it: what makes `when fits` possible."""
        widths = [level.extent.capacity for level in self.levels if level.extent.capacity is not None]
        return min(widths) if widths else None

    def require_code(self, what: str) -> None:
        """Raise `FormatError` with the first kind that parses but has no code yet."""
        for level in self.levels:
            if not level.has_code:
                raise FormatError(f"{what}: level kind '{level.kind}' has no code yet{level.extent.hint}, in '{self}'")
        if self.layout:
            raise FormatError(f"{what}: 'layout' has no code yet, in '{self}'")

    any_rank = False  # takes the number of axes from the tensor

    def for_rank(self, rank: int) -> "Format":
        """This format for a tensor of `rank` axes; refuses one that has another number."""
        if rank != self.rank:
            raise FormatError(f"'{self}' has {self.rank} axes, the tensor has {rank}")
        return self

    def for_shape(self, shape) -> "Format":
        """This format for a tensor of `shape`; refuses one with another number of axes."""
        return self.for_rank(len(shape))

    def bind(self, *sizes: int) -> "Format":
        """This format with the block sizes of `.block(...)`; formats without open sizes answer themselves."""
        return self

    def under(self, letters) -> "Format":
        """This format below one dense level for each letter: every coordinate of the new axes has its own copy.

        >>> print(Format.parse("(i, j) -> (i : dense, j : compressed)").under("h"))
        #lacis.format<(h, i, j) -> (h : dense, i : dense, j : compressed)>
        """
        return under(self, letters, shared=False)

    def batched(self, letters) -> "Format":
        """This format below one level of a batch for each letter: values alone have the new axes, the pattern is one.

        >>> print(Format.parse("(i, j) -> (i : dense, j : compressed)").batched("h"))
        #lacis.format<(h, i, j) -> (h : batch, i : dense, j : compressed)>
        """
        letters, found = tuple(letters), self.__dict__.setdefault("_batched", {})
        if letters not in found:
            found[letters] = under(self, letters, shared=True)
        return found[letters]

    def permuted(self, permutation) -> "Format":
        """The format whose axis `permutation[a]` is this one's axis `a`: the same arrays, read as a transpose."""
        names = [*permutation, *range(self.rank, self.rank + len(self.bindings))]
        levels = [_with_digits(lv, tuple(Digit(names[d.axis], d.div, d.mod) for d in lv.digits)) for lv in self.levels]
        bindings = [binding.renamed(names.__getitem__) for binding in self.bindings]
        return Format.of(levels, self.axes, bindings, self.multiset, self.layout)


def _with_digits(level: Level, digits) -> Level:
    return Level(tuple(digits), level.extent, level.coordinate)

# SPDX-License-Identifier: Apache-2.0
"""A pattern: which entries exist and where they are stored, apart from their values."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import torch

from ..errors import DataError, FormatError
from ..formats import Format, Sum
from .batch import below_batch, derived_below, one_copy
from .capturing import refuse_capture
from .check import check_parts
from .derivation import Derivation
from .functions import make, waits
from .gather import gather
from .kept import Kept
from .mask import check_bool
from .regroup import Regrouped, grid_of_slots
from .seen import changes
from .structure import Structure
from .tokens import Named, new_token
from .transforms import is_wrapped
from .uneven import most_are_listed, uneven_axes_of


class Pattern(Named):
    """The structure of a packed tensor, shared by everything that has the same entries.

    >>> import torch
    >>> p = Pattern.from_mask(torch.tensor([[True, False], [True, True]]), "(i, j) -> (i : dense, j : compressed)")
    >>> p.storage["pos1"].tolist(), p.storage["crd1"].tolist()
    ([0, 1, 3], [0, 0, 1])
    >>> p.transpose().to_mask().tolist()
    [[True, True], [False, True]]
    """

    def __init__(self, format: Format | Sum, parts: dict[str, Structure], token: str | None = None):
        self.format = format
        self.parts = parts  # one structure per part of a sum; the name is "" for a plain format
        self._shared: tuple[Pattern, int] | None = None  # the pattern below a batch, and how many levels that has
        self._kept, self._kept_at = Kept(), self.changes
        self._token = new_token(self) if token is None else token  # what compiled graphs know it by; "": none does

    @property
    def changes(self) -> int:
        """How many changes of its arrays torch has counted; a layer writes its next pattern into them."""
        total = 0
        for part in self.parts.values():
            for tensor in part.buffers.values():
                total += changes(tensor)
            if part.valid is not None:
                total += changes(part.valid)
        return total

    def _forget_changed(self) -> None:
        """Keep nothing that was made from arrays into which others were written since."""
        if self._kept_at == self.changes:
            return
        self._kept_at = self.changes
        self.parts = {
            name: dataclasses.replace(part, entries=None, distinct=False) for name, part in self.parts.items()
        }
        self._kept = Kept()
        self.__dict__.pop("uneven", None)

    def _keep(self, key: tuple, what: str, make: Callable[[], Any], waits: Callable[[], bool] = lambda: True):
        self._forget_changed()
        return self._kept.found(key, self, what, make, waits)

    @staticmethod
    def from_mask(mask: torch.Tensor, format) -> "Pattern":
        """The pattern of the True elements of a bool tensor, on its device. Raises `DataError`, `FormatError`."""
        from .build import build_pattern, for_tensor

        check_bool(mask)
        axes = list(torch.nonzero(mask, as_tuple=True))
        return build_pattern(for_tensor(format, mask.shape), tuple(mask.shape), axes, distinct=True)[0]

    @staticmethod
    def of_places(format, shape, positions: torch.Tensor, distinct: bool = True, block=None) -> "Pattern":
        """The pattern of the places with these row-major numbers, int64 [n] in any order, on their device.

        They are elements, or whole blocks of the sizes `block` in the grid of such blocks, which the format must store.
        `distinct` says that no number is there twice; without it they are looked at, and one of several is kept. Raises
        `DataError` for numbers that are none of the shape's.

        >>> p = Pattern.of_places("(i, j) -> (i : dense, j : compressed)", (2, 2), torch.tensor([3, 0]))
        >>> p.to_mask().tolist()
        [[True, False], [False, True]]
        """
        from .places import checked_places, place_pattern

        format, positions = checked_places(format, shape, positions, distinct, block)
        return place_pattern(format, shape, positions, block)[0]

    @property
    def shape(self) -> torch.Size:
        return torch.Size(self._first.shape)

    @property
    def device(self) -> torch.device:
        return self._first.device

    @property
    def _first(self) -> Structure:
        return next(iter(self.parts.values()))

    @property
    def nnz(self) -> int:
        """The number of entries."""
        self._forget_changed()
        return sum(part.nnz for part in self.parts.values())

    @property
    def distinct(self) -> bool:
        """Are no two entries at one place?"""
        keeping = [part for part in self.parts.values() if part.format.keeps_duplicates]
        return not any(part.repeats for part in keeping) and (len(keeping) < 2 or all(p.distinct for p in keeping))

    @functools.cached_property
    def uneven(self) -> tuple[bool, ...]:
        """For each axis: does one coordinate have far more entries than most? See `uneven_axes`.

        Packing finds it, for the default schedule asks. Always False on a CPU, whose ranges of rows are shared out as
        they come, and for the stacked patterns of several models.
        """
        if self.device.type == "cpu" or any(map(is_wrapped, self.storage.values())):
            return (False,) * len(self.shape)
        refuse_capture(self.device, "what the default schedule is told of a pattern")
        return self.measure_uneven()

    def measure_uneven(self) -> tuple[bool, ...]:
        """`uneven` as another device would have it; False where there are no coordinates to count."""
        if self.device.type == "meta":
            return (False,) * len(self.shape)
        return uneven_axes_of(self.parts.values(), self.shape)

    @property
    def filled(self) -> tuple[bool, ...]:
        """For each axis: does the first level list most of its coordinates? See `most_are_listed`."""
        return most_are_listed(self.parts.values(), self.shape)

    @property
    def storage(self) -> dict[str, torch.Tensor]:
        """Arrays by name, part by part, in level order: `pos1`, `crd1`, or `ell.crd1` in a sum."""
        return {part_name(n, name): t for n, part in self.parts.items() for name, t in part.buffers.items()}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """What kernels take of a pattern, by name: for each part its arrays and its validity bitmap."""
        return {part_name(n, name): t for n, part in self.parts.items() for name, t in part.kernel_arrays.items()}

    @property
    def valid(self) -> dict[str, torch.Tensor]:
        """Validity bitmaps of the parts that have one, by part."""
        return {name: part.valid for name, part in self.parts.items() if part.valid is not None}

    @functools.cached_property
    def typed_text(self) -> str:
        """The format's text with the integer types that the arrays have: what kernels are compiled for."""
        if isinstance(self.format, Sum):
            parts = {name: part.typed_format for name, part in self.parts.items()}
            return Sum(parts, self.format.predicates).text
        return self._first.typed_format.text

    def derived(self, step: Derivation | str, part: str = "") -> dict[str, torch.Tensor]:
        """The arrays that a step makes from a part, made once and kept; a text is the format of a companion index."""
        made = self.made(Derivation.index(str(step)) if isinstance(step, str | Format) else step, part)
        return made.arrays if isinstance(made, Regrouped) else made

    def made(self, step: Derivation, part: str = "") -> dict[str, torch.Tensor] | Regrouped:
        """What a step makes from a part, made once and kept; see `lacis.patterns.functions`."""
        step = step.of_pattern
        derive = lambda: self._derive(step, part)
        return self._keep(("derived", step, part), f"'{step}'", derive, lambda: waits(step, self.part(part)))

    def _derive(self, step: Derivation, part: str):
        if self._shared is not None and step.function == "index":
            return derived_below(*self._shared, step.given["format"], part)
        source = self.part(part) if step.source is None else self.made(step.source, part)
        if step.function == "layout" and source.format.batch:  # of the pattern alone
            return make(step, one_copy(source)) if self._shared is None else self._shared[0].made(step, part)
        return make(step, source, lambda: self._slots(part))

    def layout(self, step: Derivation, part: str = "") -> Regrouped:
        """The execution layout that a step makes, made once and kept. Raises `FormatError` for another step."""
        made = self.made(step, part)
        if not isinstance(made, Regrouped):
            raise FormatError(f"'{step}' is no execution layout")
        return made

    def _slots(self, part: str) -> torch.Tensor | None:
        """The grid of slots that all execution layouts are made from; see `grid_of_slots`."""
        return self._keep(("slots", part), "an execution layout", lambda: grid_of_slots(self.part(part)))

    def conversion(self, format: Format | Sum):
        """What moves values of this pattern into another format, made once and kept; see `convert`."""
        from .conversion import convert

        key = ("conversion", format)

        def make():
            conversion = convert(self, format)
            return conversion, conversion.pattern.changes

        conversion, made_at = self._keep(key, f"'{format}'", make)
        if conversion.pattern.changes != made_at:  # others were written into its arrays
            del self._kept[key]
            return self.conversion(format)
        return conversion

    def array(self, part: str, step: Derivation | str, name: str) -> torch.Tensor:
        """One array that kernels take: of what a step makes, or the pattern's own where the step is empty."""
        return self.derived(step, part)[name] if step else self.part(part).array(name)

    def part(self, name: str = "") -> Structure:
        if name not in self.parts:
            raise FormatError(f"no part '{name}', the parts are {', '.join(map(repr, self.parts))}")
        return self.parts[name]

    def of_part(self, name: str) -> "Pattern":
        """The pattern of one part of a sum, over the same arrays; made once and kept."""
        self._forget_changed()
        structure = self.part(name)
        return self._kept.setdefault(("part", name), Pattern(structure.format, {"": structure}))

    def to_mask(self) -> torch.Tensor:
        """bool tensor of the pattern's shape, True at entries."""
        mask = torch.zeros(self.shape, dtype=torch.bool, device=self.device)
        for part in self.parts.values():
            axes, valid = part.coordinates()
            mask[tuple(axis[valid] for axis in axes)] = True
        return mask

    def gather(self, tensor: torch.Tensor):
        """The values of a dense tensor at the entries, 0 in padding; of a sum, a dict of part name to tensor.

        The tensor has the pattern's shape and device; gradients flow back to it. Of entries at one place the first
        takes the value, the others 0.

        >>> p = Pattern.from_mask(torch.tensor([[True, False], [True, True]]), "(i, j) -> (i : dense, j : packed<?>)")
        >>> p.gather(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [1.0, 0.0, 3.0, 4.0]
        """
        return gather(self, tensor)

    def transpose(self, *permutation: int) -> "Pattern":
        """The pattern with its axes permuted (reversed when none are given), over the same arrays."""
        rank = len(self.shape)
        order = list(permutation or reversed(range(rank)))
        if sorted(order) != list(range(rank)):
            raise DataError(f"a permutation of {rank} axes is needed, not {order}")
        place = [order.index(axis) for axis in range(rank)]
        shape = tuple(self.shape[axis] for axis in order)
        parts = {}
        for name, part in self.parts.items():
            parts[name] = dataclasses.replace(part, format=part.format.permuted(place), shape=shape)
        pattern = Pattern(self.format.permuted(place), parts)
        if "uneven" in self.__dict__:
            pattern.uneven = tuple(self.uneven[axis] for axis in order)
        return pattern

    def batched(self, sizes, letters: str) -> "Pattern":
        """The same entries for each of `sizes` batches or heads, new first axes with these letters; arrays are shared.

        >>> p = Pattern.from_mask(torch.tensor([[True, False], [True, True]]), "(i, j) -> (i : dense, j : compressed)")
        >>> p.batched([2], "h").storage["pos2"].tolist(), p.batched([2], "h").part().values_shape
        ([0, 1, 3], (2, 3))
        """
        make = lambda: below_batch(self, tuple(sizes), letters)
        return self._keep(("batched", tuple(sizes), letters), "a batch", make, waits=lambda: False)

    def to(self, device) -> "Pattern":
        """The pattern on another device."""
        moved = {name: part.mapped(lambda t: t.to(device)) for name, part in self.parts.items()}
        return Pattern(self.format, moved)

    def validate(self) -> "Pattern":
        """Raise `DataError`, with the array and the place, unless every array is well formed."""
        for name, part in self.parts.items():
            part.check(part_name(name, ""))
        check_parts(self.format, self.parts)
        return self

    def __getstate__(self):
        return {**self.__dict__, "_kept": Kept(), "_kept_at": -1}  # copies and files make theirs

    def __repr__(self) -> str:
        return f"Pattern({list(self.shape)}, {self.format}, nnz={self.nnz}, device={self.device})"


def part_name(part: str, name: str) -> str:
    """The full name of a part's array: `ell.crd1`, or `crd1` without a part."""
    return f"{part}.{name}" if part else name

# SPDX-License-Identifier: Apache-2.0
"""A pattern: which entries exist and where they are stored, apart from their values."""

from __future__ import annotations

import dataclasses
import functools

import torch

from ..errors import DataError, FormatError
from ..formats import Format, Sum
from .capturing import refuse_capture
from .check import check_distinct
from .derived import companion_arrays
from .execution import execution_layout, execution_lists, is_rule, layout_of_lists, without_lines
from .plain import check_plain
from .regroup import Regrouped
from .seen import changes
from .structure import Structure
from .transforms import is_wrapped, outside_transforms
from .uneven import uneven_axes


class Pattern:
    """The structure of a packed tensor, shared by everything that has the same entries.

    >>> import torch
    >>> p = Pattern.from_mask(torch.tensor([[True, False], [True, True]]), "(i, j) -> (i : dense, j : compressed)")
    >>> p.storage["pos1"].tolist(), p.storage["crd1"].tolist()
    ([0, 1, 3], [0, 0, 1])
    >>> p.transpose().to_mask().tolist()
    [[True, True], [False, True]]
    """

    def __init__(self, format: Format | Sum, parts: dict[str, Structure]):
        self.format = format
        self.parts = parts  # one structure per part of a sum; the name is "" for a plain format
        self._derived: dict[tuple[str, str], dict[str, torch.Tensor]] = {}
        self._of_part: dict[str, Pattern] = {}
        self._layouts: dict[tuple[str, str], Regrouped] = {}
        self._conversions: dict[Format | Sum, tuple] = {}
        self._repeated: dict[tuple, Pattern] = {}
        self._derived_at = self.changes

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
        if self._derived_at == self.changes:
            return
        self._derived_at = self.changes
        self.parts = {
            name: dataclasses.replace(part, entries=None, distinct=False) for name, part in self.parts.items()
        }
        self._derived, self._of_part, self._layouts = {}, {}, {}
        self._conversions, self._repeated = {}, {}
        self.__dict__.pop("uneven", None)

    @staticmethod
    def from_mask(mask: torch.Tensor, format) -> "Pattern":
        """The pattern of the True elements of a bool tensor, on its device. Raises `DataError`, `FormatError`."""
        from .build import build_pattern, for_tensor

        if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool or mask.ndim == 0:
            what = mask.dtype if isinstance(mask, torch.Tensor) else type(mask).__name__
            raise DataError(f"a mask must be a bool tensor with at least one axis, not {what}")
        if mask.device.type == "meta":
            raise DataError("a mask on meta has no values, so it names no entries; load them first")
        check_plain("the mask", mask)
        axes = list(torch.nonzero(mask, as_tuple=True))
        return build_pattern(for_tensor(format, mask.shape), tuple(mask.shape), axes, distinct=True)[0]

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
        entries: list[list[torch.Tensor]] = [[] for _ in self.shape]
        for part in self.parts.values():
            axes, valid = part.coordinates()
            for found, axis in zip(entries, axes):
                found.append(axis[valid])
        axes = [torch.cat(found) for found in entries]
        return uneven_axes(self.shape, axes, blocks=any(part.format.tile for part in self.parts.values()))

    @property
    def filled(self) -> tuple[bool, ...]:
        """For each axis: does the first level list at least half of its coordinates, 1024 or more? Then nothing is
        saved by a loop over the list. From the arrays' sizes alone; False for the parts of a sum.
        """
        flags = [False] * len(self.shape)
        level, listed = self._first.format.levels[0], self._first.buffers.get("crd0")
        if len(self.parts) == 1 and listed is not None and getattr(level.coordinate, "unique", False):
            for digit in level.digits:
                flags[digit.axis] = listed.numel() >= max(1024, level.size(self.shape) / 2)
        return tuple(flags)

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

    def derived(self, format_text: str, part: str = "") -> dict[str, torch.Tensor]:
        """The arrays of the companion with this format, made once and kept; see `companion_arrays`."""
        self._forget_changed()
        key = (str(format_text), part)
        if key not in self._derived:
            refuse_capture(self.device, f"'{format_text}' of a pattern")
            with outside_transforms(self.storage.values(), f"'{format_text}'"):
                self._derived[key] = self._derive(*key)
        return self._derived[key]

    def _derive(self, text: str, part: str) -> dict[str, torch.Tensor]:
        if not is_rule(text):
            return companion_arrays(self.part(part), text)
        if text.startswith("regroup"):
            return self.layout(text, part).arrays
        return execution_lists(self.part(part), text, self.layout(layout_of_lists(text), part))

    def layout(self, text: str, part: str = "") -> Regrouped:
        """The execution layout with this text, made once and kept; see `lacis.patterns.execution`."""
        self._forget_changed()
        key = (without_lines(text), part)
        if key not in self._layouts:
            refuse_capture(self.device, f"'{text}' of a pattern")
            with outside_transforms(self.storage.values(), f"'{text}'"):
                self._layouts[key] = execution_layout(self.part(part), key[0])
        return self._layouts[key]

    def conversion(self, format: Format | Sum):
        """What moves values of this pattern into another format, made once and kept; see `convert`."""
        from .conversion import convert

        self._forget_changed()
        conversion, made_at = self._conversions.get(format, (None, None))
        if conversion is None or conversion.pattern.changes != made_at:  # others were written into its arrays
            refuse_capture(self.device, f"'{format}' of a pattern")
            with outside_transforms(self.storage.values(), f"'{format}'"):
                conversion = convert(self, format)
            self._conversions[format] = conversion, conversion.pattern.changes
        return conversion

    def array(self, part: str, format_text: str, name: str) -> torch.Tensor:
        """One array that kernels take: of the companion with this text, or its own where the text is empty."""
        return self.derived(format_text, part)[name] if format_text else self.tensors[part_name(part, name)]

    def part(self, name: str = "") -> Structure:
        if name not in self.parts:
            raise FormatError(f"no part '{name}', the parts are {', '.join(map(repr, self.parts))}")
        return self.parts[name]

    def of_part(self, name: str) -> "Pattern":
        """The pattern of one part of a sum, over the same arrays; made once and kept."""
        self._forget_changed()
        if name not in self._of_part:
            structure = self.part(name)
            self._of_part[name] = Pattern(structure.format, {"": structure})
        return self._of_part[name]

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
        if tensor.shape != self.shape or tensor.device != self.device:
            what = f"shape {list(tensor.shape)} on {tensor.device}"
            raise DataError(f"the tensor has {what}, the pattern {list(self.shape)} on {self.device}")
        values = {}
        for name, part in self.parts.items():
            axes, valid = part.coordinates()
            if part.repeats:
                again = torch.ones(len(valid) - 1, dtype=torch.bool, device=self.device)
                for axis in axes:
                    again &= axis[1:] == axis[:-1]
                valid = torch.cat([valid[:1], valid[1:] & ~again])
            flat = torch.zeros(len(valid), dtype=tensor.dtype, device=tensor.device)
            at = valid.nonzero().reshape(-1)
            flat = flat.index_put((at,), tensor[tuple(axis[at] for axis in axes)])
            values[name] = flat.reshape(part.values_shape)
        return values if isinstance(self.format, Sum) else values[""]

    def transpose(self, *permutation: int) -> "Pattern":
        """The pattern with its axes permuted (reversed when none are given), over the same arrays."""
        rank = len(self.shape)
        order = list(permutation) or list(reversed(range(rank)))
        if sorted(order) != list(range(rank)):
            raise DataError(f"a permutation of {rank} axes is needed, not {order}")
        place = [order.index(axis) for axis in range(rank)]
        shape = tuple(self.shape[axis] for axis in order)
        parts = {}
        for name, part in self.parts.items():
            fmt = part.format.permuted(place)
            parts[name] = dataclasses.replace(part, format=fmt, shape=shape)
        pattern = Pattern(self.format.permuted(place), parts)
        if "uneven" in self.__dict__:
            pattern.uneven = tuple(self.uneven[axis] for axis in order)
        return pattern

    def repeated(self, sizes, letters: str) -> "Pattern":
        """The same entries for each of `sizes` batches or heads, new first axes with these letters; made once and kept.

        Each copy has arrays of its own. Nothing waits for the device.

        >>> p = Pattern.from_mask(torch.tensor([[True, False], [True, True]]), "(i, j) -> (i : dense, j : compressed)")
        >>> p.repeated([2], "h").storage["pos2"].tolist()
        [0, 1, 3, 4, 6]
        """
        self._forget_changed()
        key = (tuple(sizes), letters)
        if key not in self._repeated:
            with outside_transforms(self.storage.values(), "copies under batch letters"):
                parts = {name: part.repeated(*key) for name, part in self.parts.items()}
            made = self._repeated[key] = Pattern(self.format.under(letters), parts)
            if self.device.type != "cpu":
                made.uneven = (*(False for _ in letters), *self.uneven)
        return self._repeated[key]

    def to(self, device) -> "Pattern":
        """The pattern on another device."""
        moved = {name: part.mapped(lambda t: t.to(device)) for name, part in self.parts.items()}
        return Pattern(self.format, moved)

    def validate(self) -> "Pattern":
        """Raise `DataError`, with the array and the place, unless every array is well formed."""
        for name, part in self.parts.items():
            part.check(part_name(name, ""))
        check_distinct(self.parts)
        return self

    def __getstate__(self):
        kept = ("_derived", "_of_part", "_layouts", "_conversions", "_repeated")  # copies and files make theirs
        return {**self.__dict__, **{name: {} for name in kept}, "_derived_at": -1}

    def __repr__(self) -> str:
        return f"Pattern({list(self.shape)}, {self.format}, nnz={self.nnz}, device={self.device})"


def part_name(part: str, name: str) -> str:
    """The full name of a part's array: `ell.crd1`, or `crd1` without a part."""
    return f"{part}.{name}" if part else name

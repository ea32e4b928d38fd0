# SPDX-License-Identifier: Apache-2.0
"""A packed weight as a module of plain tensors: `values` is a Parameter, `pos1`, `crd1`, ... are buffers."""

from __future__ import annotations

import dataclasses
import typing

import torch

from ..errors import ScheduleError
from ..formats import Format
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.axes import read_once
from ..patterns.capturing import is_captured
from ..patterns.derivation import Derivation
from ..patterns.seen import runs_again
from ..patterns.structure import Structure
from ..patterns.tile_copy import TileCopy
from ..patterns.widths import asked_width
from .answers import Answers
from .arrays import as_array, as_buffer
from .copied import BoundCopy, CopiedValues
from .known import Known, keeps_content
from .load import load_part
from .replace import put_all
from .sharded import whole


class Held(typing.NamedTuple):
    """What derived arrays are known by: the step that makes them; of a copy of values its dtype, None: the weight's."""

    step: Derivation
    is_copy: bool = False
    dtype: torch.dtype | None = None


class PackedPart(torch.nn.Module):
    """The arrays of one format. `valid` marks padding inside stored blocks, None when there is none.

    Derived arrays (`derived`) are buffers too, which no state dict holds; they follow the pattern.
    """

    kept_gradient = None  # what drops entries of the gradient of its values
    has_room = False  # there may be slots behind the last position; see `lacis.patterns.room`

    def __init__(self, structure: Structure, values: torch.Tensor, requires_grad: bool = True):
        super().__init__()
        self.format = structure.format
        self.packed_shape = torch.Size(structure.shape)
        self.values = torch.nn.Parameter(values.detach(), requires_grad=requires_grad)
        for name, tensor in structure.buffers.items():
            self.register_buffer(name, as_buffer(tensor))
        self.register_buffer("valid", structure.valid)
        self.register_buffer("all_valid", torch.zeros(0, dtype=torch.bool, device=values.device), persistent=False)
        self.derived: dict[Held, dict[str, str]] = {}  # {array: name of the buffer}
        self._copies: dict[str, CopiedValues] = {}  # by buffer of tiles
        self.has_room = structure.has_room
        self.revision = 0  # counts the patterns that it had
        with torch.inference_mode(False):
            self.counted = torch.empty(0)  # its version counts them too, for who has no Python
        self.is_captured = False  # a CUDA graph was captured that walks these arrays
        self._known = Known()
        self._known.note(self)

    @property
    def own_arrays(self) -> dict[str, torch.Tensor]:
        """The buffers of the pattern, by name: those of the format's levels, and `valid` where there is one."""
        named = {name: getattr(self, name) for name in self.format.buffers}
        return named if self.valid is None else {**named, "valid": self.valid}

    def array(self, name: str) -> torch.Tensor:
        """An array as the integers that it holds, over the memory of its buffer; see `lacis.nn.arrays`."""
        return as_array(getattr(self, name))

    @property
    def structure(self) -> Structure:
        buffers = {name: self.array(name) for name in self.format.buffers}
        given = self.format, self.packed_shape, buffers, self.values, self.valid
        return Structure.of_values(*given, has_room=self.has_room)

    def packed(self) -> PackedTensor:
        """The part as a packed tensor, over the same arrays. Raises `DataError` where they hold no numbers.

        Values that are shared out over ranks (FSDP2) are gathered: all ranks must call it.
        """
        self._known.require_content(self)
        return PackedTensor(Pattern(self.format, {"": self.structure}), {"": whole(self.values)})

    @property
    def bitmap(self) -> torch.Tensor:
        """`valid` as kernels take it: empty when every stored value is an entry."""
        return self.all_valid if self.valid is None else self.valid

    def typed(self, other: Structure) -> Structure:
        """A structure of the same format but for integer types, in this part's; what is longer than these stays so."""
        buffers = {}
        for name, tensor in other.buffers.items():
            is_free = asked_width(self.format, name) is None and tensor.dtype in (torch.int32, torch.int64)
            buffers[name] = tensor if is_free else tensor.to(self.array(name).dtype)
        return dataclasses.replace(other, format=self.format, buffers=buffers)

    def holds_pattern(self, other: Structure) -> bool:
        """Are the arrays those of this structure, with all that is derived?"""
        if not self._known.holds(self) or (self.valid is None) != (other.valid is None):
            return False
        given = other.buffers if other.valid is None else {**other.buffers, "valid": other.valid}
        return all(torch.equal(as_array(tensor), given[name]) for name, tensor in self.own_arrays.items())

    def refresh(self) -> None:
        """Make the derived arrays again, on the device."""
        pattern = self.packed().pattern
        with torch.inference_mode(self.values.is_inference()), torch.no_grad():  # as it was made
            put_all(self, self.derived_of(pattern, self.values))
        self.note_pattern(pattern)

    def note_pattern(self, pattern: Pattern) -> None:
        """The arrays are those of another pattern, with all that is derived."""
        self.revision += 1
        torch.autograd.graph.increment_version(self.counted)
        for key in self.derived:
            if key.is_copy:
                self._note_copy(key, pattern)
        self._known.note(self)

    def note_written(self) -> None:
        """As `note_pattern`, of arrays as long as those before, which torch did not see written."""
        torch.autograd.graph.increment_version([self.values, *self.buffers(), self.counted])
        self.revision += 1
        for copied in self._copies.values():
            copied.forget()
        self._known.note(self)

    def derived_of(self, pattern: Pattern, values: torch.Tensor) -> dict[str, torch.Tensor]:
        """All that kernels walk beside a pattern's own arrays and its values, by name of the buffer."""
        return {name: as_buffer(tensor) for name, tensor in self.derived_arrays(pattern, values).items()}

    def derived_arrays(self, pattern: Pattern, values: torch.Tensor) -> dict[str, torch.Tensor]:
        """`derived_of` as the integers that the buffers hold; see `lacis.nn.arrays`."""
        found = {}
        with read_once():
            for key, names in self.derived.items():
                made = self._arrays_of(pattern, key, values)
                found.update({names[n]: tensor for n, tensor in made.items() if names[n] not in self.format.buffers})
        return found

    @torch.inference_mode(False)  # a copy is filled again in every mode
    def _arrays_of(self, pattern: Pattern, key: Held, values: torch.Tensor) -> dict[str, torch.Tensor]:
        """The arrays of `require`: of a copy of `values` the tiles and where they come from, else of the pattern."""
        if not key.is_copy:
            return pattern.derived(key.step)
        values = values.detach().to(key.dtype or self.values.dtype)
        layout, line = pattern.layout(key.step), key.step.line
        return {"places": layout.places(line, values.element_size()), "values": layout.values(values, line)}

    def _note_copy(self, key: Held, pattern: Pattern) -> None:
        """How the copy is made from now on, which depends on the pattern."""
        names = self.derived[key]
        how, known = TileCopy.of(pattern.layout(key.step), key.dtype), self._copies.get(names["values"])
        if known is not None and known.is_made(names["places"], how):
            known.forget()  # who is bound to it stays so
        else:
            self._copies[names["values"]] = CopiedValues(names["places"], how)

    def require(self, step: Derivation, array: str, dtype: torch.dtype | None = None) -> str:
        """Keep this array of what a step makes from now on, and those with it; the buffer's name.

        The values are a copy in `dtype`, in theirs where there is none.
        """
        copied = array == "values"
        key = Held(step, True, None if dtype == self.values.dtype else dtype) if copied else Held(step.of_pattern)
        if key not in self.derived:
            pattern = self.packed().pattern
            arrays = self._arrays_of(pattern, key, self.values)
            own = pattern.part()
            shared = {id(tensor): name for name, tensor in {**own.buffers, "valid": own.valid}.items()}
            names = {n: shared.get(id(t), f"derived{len(self.derived)}_{n}") for n, t in arrays.items()}
            for name, tensor in arrays.items():
                if names[name] not in self._buffers:
                    alone = copied or tensor.untyped_storage().nbytes() == tensor.nbytes  # else it is a row of several
                    own = as_buffer(tensor if alone else tensor.clone())
                    self.register_buffer(names[name], own, persistent=False)
            self.derived[key] = names
            if copied:
                self._note_copy(key, pattern)
        return self.derived[key][array]

    def tensor(self, name: str) -> torch.Tensor:
        """What a kernel takes by this name; a copy of the values is made again where they have changed.

        A call that autograd records, that is traced, or that a CUDA graph repeats, gets a copy of its own.
        """
        if name not in self._copies:
            return getattr(self, name)
        if torch.compiler.is_compiling() or not self.refreshed(name):
            copied = self._copies[name]
            return copied.made(self.values, getattr(self, copied.places))
        return getattr(self, name)

    def refreshed(self, name: str) -> bool:
        """Bring a copy of the values up to date in its buffer; False where the call must have one of its own."""
        copied, values, buffers = self._copies[name], self.values, self._buffers
        if values.is_inference() or runs_again(values) or (torch.is_grad_enabled() and values.requires_grad):
            return False
        if not copied.serves(buffers[name], values):
            if is_captured(values.device):  # nothing runs yet
                return False
            buffers[name] = copied.fill(buffers[name], values, buffers[copied.places], lasts=True)
        return True

    def bound_copy(self, name: str, values: torch.Tensor) -> BoundCopy:
        """A copy of `values`, which are this part's, for calls that are bound to its buffer."""
        copied, buffers = self._copies[name], self._buffers
        return BoundCopy(copied, buffers[name], buffers[copied.places], values)

    def fills(self, name: str, bound: BoundCopy) -> bool:
        """Is a bound copy made as that of this name is now?"""
        return bound.copied is self._copies[name]

    def keep_room(self, keeps: bool) -> None:
        """From now on its kernels take it that there may be slots behind the last position, or that there are none."""
        if self.has_room != keeps:
            self.has_room = keeps
            self.revision += 1

    def make_room(self, name: str) -> None:
        """Have a copy of the values lie where it can be filled again: a module that was moved or cast moves it."""
        copied, buffers = self._copies[name], self._buffers
        buffers[name] = copied.with_room(buffers[name], self.values, buffers[copied.places])

    def written(self) -> list[tuple[torch.Tensor, int]]:
        """The arrays of the pattern as they were last looked at, each with the changes that torch had counted."""
        return self._known.written()

    def _apply(self, fn, recurse=True):
        before, held = {"values": self.values, **self.own_arrays}, self._known.holds(self)
        keeps = keeps_content(fn, self.values.device)
        super()._apply(fn, recurse)
        self._known.moved(self, before, held, keeps)
        return self

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        load_part(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def extra_repr(self) -> str:
        return f"{list(self.packed_shape)}, {self.format}, slots={self.values.numel()}"


class PackedWeight(Answers, PackedPart):
    """A weight in one format."""

    def _parts(self) -> list[PackedPart]:
        return [self]

    def _named_parts(self):
        return [("", self)]

    def _part(self, name: str) -> PackedPart:
        return self


class PackedSum(Answers, torch.nn.Module):
    """A weight that is a sum: one `PackedPart` by name for each part (`weight.ell.values`)."""

    def __init__(self, packed: PackedTensor, requires_grad: bool = True):
        super().__init__()
        self.format = packed.format
        self.packed_shape = packed.shape
        for name, structure in packed.pattern.parts.items():
            if hasattr(self, name):
                raise ScheduleError(f"a part cannot be named '{name}', a module has that name already")
            self.add_module(name, PackedPart(structure, packed.values[name], requires_grad))

    def _parts(self) -> list[PackedPart]:
        return [self._part(name) for name in self.format.parts]

    def _named_parts(self):
        return [(name, self._part(name)) for name in self.format.parts]

    def _part(self, name: str) -> PackedPart:
        return self._modules[name]

    def packed(self) -> PackedTensor:
        """The sum as a packed tensor, over the same arrays. Raises `DataError` where they hold no numbers."""
        parts = {name: part.packed() for name, part in self._named_parts()}
        pattern = Pattern(self.format, {name: packed.pattern.part() for name, packed in parts.items()})
        return PackedTensor(pattern, {name: packed.values for name, packed in parts.items()})


def weight_module(packed: PackedTensor, requires_grad: bool = True, shape=None) -> PackedWeight | PackedSum:
    """The module that holds a packed tensor; `shape` is that of the dense weight, where it is stored as a matrix."""
    if isinstance(packed.format, Format):
        weight = PackedWeight(packed.pattern.part(), packed.values, requires_grad)
    else:
        weight = PackedSum(packed, requires_grad)
    weight.shape = packed.shape if shape is None else torch.Size(shape)
    return weight

# SPDX-License-Identifier: Apache-2.0
"""A packed weight as a module of plain tensors: `values` is a Parameter, `pos1`, `crd1`, ... are buffers."""

from __future__ import annotations

import math

import torch

from ..errors import DataError, ScheduleError
from ..formats import Format, Sum
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.capturing import is_captured
from ..patterns.execution import TileCopy, line_bytes
from ..patterns.seen import runs_again
from ..patterns.structure import Structure
from .copied import BoundCopy, CopiedValues
from .load import load_part


_IN = " in "  # after the text of a copy of values, before its dtype, where that is not the weight's


class PackedPart(torch.nn.Module):
    """The arrays of one format. `valid` marks padding inside stored blocks, None when there is none.

    Derived arrays (`derived`) are buffers too, which no state dict holds; they follow the pattern.
    """

    def __init__(self, structure: Structure, values: torch.Tensor, requires_grad: bool = True):
        super().__init__()
        self.format = structure.format
        self.shape = torch.Size(structure.shape)
        self.values = torch.nn.Parameter(values.detach(), requires_grad=requires_grad)
        for name, tensor in structure.buffers.items():
            self.register_buffer(name, tensor)
        self.register_buffer("valid", structure.valid)
        self.register_buffer("all_valid", torch.zeros(0, dtype=torch.bool, device=values.device), persistent=False)
        self.derived: dict[str, dict[str, str]] = {}  # text to {array: name of the buffer}
        self._copies: dict[str, CopiedValues] = {}  # by buffer of tiles
        self.revision = 0  # counts the patterns that it had

    @property
    def structure(self) -> Structure:
        buffers = {name: getattr(self, name) for name in self.format.buffers}
        device = self.values.device
        return Structure(self.format, tuple(self.shape), buffers, self.values.shape[0], device, self.valid)

    def packed(self) -> PackedTensor:
        return PackedTensor(Pattern(self.format, {"": self.structure}), {"": self.values})

    @property
    def bitmap(self) -> torch.Tensor:
        """`valid` as kernels take it: empty when every stored value is an entry."""
        return self.all_valid if self.valid is None else self.valid

    def set_part(self, structure: Structure, values: torch.Tensor) -> None:
        """Another pattern and its values, into the same Parameter; derived arrays are made again."""
        self.values.data = values.detach().to(self.values.dtype)
        self.values.grad = None
        for name, tensor in structure.buffers.items():
            setattr(self, name, tensor)
        self.valid = structure.valid
        self.refresh()

    def refresh(self) -> None:
        """Make the derived arrays again, on the device."""
        pattern = self.packed().pattern
        self.revision += 1
        for text, names in self.derived.items():
            for name, tensor in self._arrays_of(pattern, text).items():
                setattr(self, names[name], tensor)

    @torch.inference_mode(False)  # a copy is filled again in every mode
    def _arrays_of(self, pattern: Pattern, key: str) -> dict[str, torch.Tensor]:
        """The arrays of `require`: of a copy of the values the tiles and where they come from, else of the pattern."""
        text, copied, dtype = key.partition(_IN)
        if not copied:
            return pattern.derived(text)
        values = self.values.detach().to(getattr(torch, dtype) if dtype else self.values.dtype)
        layout, line = pattern.layout(text), line_bytes(text)
        arrays = {"places": layout.places(line, values.element_size()), "values": layout.values(values, line)}
        if key in self.derived:
            self._note_copy(key, pattern)
        return arrays

    def _note_copy(self, key: str, pattern: Pattern) -> None:
        """How the copy is made from now on, which depends on the pattern."""
        text, _, dtype = key.partition(_IN)
        names = self.derived[key]
        copy = TileCopy.of(pattern.layout(text), getattr(torch, dtype) if dtype else None)
        self._copies[names["values"]] = CopiedValues(names["places"], copy)

    def require(self, text: str, array: str, dtype: torch.dtype | None = None) -> str:
        """Keep this array of a companion or an execution layout from now on, and those with it; the buffer's name.

        The values are a copy in `dtype`, in theirs where there is none.
        """
        key, copied = text, array == "values"
        if copied:
            key += _IN + ("" if dtype in (None, self.values.dtype) else str(dtype).removeprefix("torch."))
        if key not in self.derived:
            pattern = self.packed().pattern
            arrays = self._arrays_of(pattern, key)
            names = {name: f"derived{len(self.derived)}_{name}" for name in arrays}
            for name, tensor in arrays.items():
                self.register_buffer(names[name], tensor, persistent=False)
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

    def make_room(self, name: str) -> None:
        """Have a copy of the values lie where it can be filled again: a module that was moved or cast moves it."""
        copied, buffers = self._copies[name], self._buffers
        buffers[name] = copied.with_room(buffers[name], self.values, buffers[copied.places])

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        load_part(self, state_dict, prefix, strict, missing_keys, unexpected_keys, error_msgs)

    def extra_repr(self) -> str:
        return f"{list(self.shape)}, {self.format}, slots={self.values.numel()}"


class _Weight:
    """What a layer's `weight` answers beside its tensors: the shape, dtype and device of the dense one."""

    @property
    def dtype(self) -> torch.dtype:
        return self._parts()[0].values.dtype

    @property
    def device(self) -> torch.device:
        return self._parts()[0].values.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def requires_grad(self) -> bool:
        return any(part.values.requires_grad for part in self._parts())

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None):
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return math.prod(self.shape)

    def to_dense(self) -> torch.Tensor:
        """The strided weight; differentiable in the values."""
        return self.packed().to_dense()

    @property
    def derived_bytes(self) -> int:
        """Bytes of all derived arrays, those of gradients and of autocast regions included."""
        names = [(part, name) for part in self._parts() for held in part.derived.values() for name in held.values()]
        return sum(getattr(part, name).numel() * getattr(part, name).element_size() for part, name in names)

    def bind(self, arrays, dtype: torch.dtype | None = None) -> list[tuple[str, str]]:
        """Where the tensors are that kernels take: (part, attribute); derived ones are made.

        `arrays` are `(part, text of the companion's format or "", name)`, in the order of the answer. Copies of values
        are in `dtype`, by default in the weight's.
        """
        found = []
        for part, text, name in arrays:
            if text:
                name = self._part(part).require(text, name, dtype)
            found.append((part, "bitmap" if name == "valid" else name))
        return found

    def validate(self) -> None:
        """Raise `DataError`, with the array and the place, unless all arrays are well formed, derived ones included."""
        self.packed().validate()
        for _, part in self._named_parts():
            pattern = part.packed().pattern
            for text, names in part.derived.items():
                for name, tensor in part._arrays_of(pattern, text).items():
                    held = part.tensor(names[name])
                    if held.dtype != tensor.dtype or not torch.equal(held, tensor):
                        raise DataError(
                            f"'{names[name]}' is not what follows from the pattern; set_packed() makes it again"
                        )

    def set_packed(self, packed: PackedTensor) -> None:
        """Another pattern and its values, of the same shape and format."""
        if packed.format != self.format or packed.shape != self.shape:
            raise DataError(
                f"the weight is {list(self.shape)} in '{self.format}', not {list(packed.shape)} in '{packed.format}'"
            )
        for name, structure in packed.pattern.parts.items():
            values = packed.values[name] if isinstance(self.format, Sum) else packed.values
            self._part(name).set_part(structure, values)

    def dense_state(self, dense: torch.Tensor) -> dict[str, torch.Tensor]:
        """The values that a dense weight has at this pattern's entries, by name of the Parameter."""
        if tuple(dense.shape) != tuple(self.shape):
            raise DataError(f"the dense weight has shape {list(dense.shape)}, the packed one {list(self.shape)}")
        values = self.packed().pattern.gather(dense)
        return {f"{name}.values": v for name, v in values.items()} if isinstance(values, dict) else {"values": values}


class PackedWeight(_Weight, PackedPart):
    """A weight in one format."""

    def _parts(self) -> list[PackedPart]:
        return [self]

    def _named_parts(self):
        return [("", self)]

    def _part(self, name: str) -> PackedPart:
        return self


class PackedSum(_Weight, torch.nn.Module):
    """A weight that is a sum: one `PackedPart` by name for each part (`weight.ell.values`)."""

    def __init__(self, packed: PackedTensor, requires_grad: bool = True):
        super().__init__()
        self.format = packed.format
        self.shape = packed.shape
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
        parts = {name: part.structure for name, part in self._named_parts()}
        return PackedTensor(Pattern(self.format, parts), {name: part.values for name, part in self._named_parts()})


def weight_module(packed: PackedTensor, requires_grad: bool = True) -> PackedWeight | PackedSum:
    """The module that holds a packed tensor."""
    if isinstance(packed.format, Format):
        return PackedWeight(packed.pattern.part(), packed.values, requires_grad)
    return PackedSum(packed, requires_grad)

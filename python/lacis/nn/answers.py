# SPDX-License-Identifier: Apache-2.0
"""What a layer's packed weight answers as a whole: the shape and dtype of the dense one, its arrays, its patterns."""

from __future__ import annotations

import math

import torch

from ..errors import DataError
from ..formats.widths import without_widths
from ..packing import PackedTensor
from ..patterns import Pattern
from .arrays import as_array
from .no_tensor import NoTensor
from .recorded import revision
from .replace import Replacement
from .stacked import Slice, TurnedStack
from .uses import Turned, Used


class Answers(NoTensor, Used):
    """What a layer's `weight` answers beside its tensors, be it one packed part or a sum of several."""

    is_packed_weight = True  # what schedules know it by
    sets_by_hand = 0  # how often `set_packed` was called
    _uneven: tuple[int, tuple[bool, ...]] | None = None  # of which pattern, by revision, and what is uneven in it

    @property
    def T(self) -> Turned | TurnedStack:
        """The transpose of the packed weight, over the same arrays and values; products with it are the layer's.

        Of a stack of matrices it is that of each.
        """
        return TurnedStack(self) if self.stacks else Turned(self)

    def __getitem__(self, index) -> Slice:
        """A matrix of a stack [experts, rows, columns]. Raises `TypeError` for other weights, and for other indices."""
        if not self.stacks:
            raise TypeError(
                f"a packed weight {list(self.shape)} is no stack of matrices; weight.to_dense()[...] is dense"
            )
        return Slice(self, index)

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
        return self.packed().to_dense().reshape(self.shape)

    def described(self) -> PackedTensor:
        """`packed()`, whose pattern knows what default schedules ask of it: found once for each pattern."""
        packed, now = self.packed(), revision(self._parts())
        if self._uneven is None or self._uneven[0] != now:
            self._uneven = now, packed.pattern.uneven
        packed.pattern.uneven = self._uneven[1]
        return packed

    def sizes(self) -> tuple:
        """What kernels and schedules are told: sizes and types of arrays, what is uneven, and whether TF32 may be.

        Patterns of one format for which it is the same have the same kernel: specifications take 20 times as long.
        """
        if self._uneven is None or self._uneven[0] != revision(self._parts()):
            self.described()
        of_part = lambda part: tuple((name, array.shape, array.dtype) for name, array in part.own_arrays.items())
        parts = tuple((part.has_room, part.values.shape, part.values.dtype, of_part(part)) for part in self._parts())
        return parts, self._uneven[1], torch.backends.cuda.matmul.fp32_precision

    @property
    def has_content(self) -> bool:
        """Do the arrays hold numbers? Not on the meta device, nor after `to_empty` until they are loaded."""
        return all(part._known.empty(part) is None for part in self._parts())

    def follow(self) -> None:
        """Take over what was written into the arrays since the last call. Raises `DataError` for malformed ones."""
        for part in self._parts():
            part._known.follow(part)
            if part.kept_gradient is not None:
                part.kept_gradient.follow()

    @property
    def derived_bytes(self) -> int:
        """Bytes of all derived arrays beside the weight's own, those of gradients and of autocast regions included."""
        found = {name: part for part in self._parts() for held in part.derived.values() for name in held.values()}
        arrays = [getattr(part, name) for name, part in found.items() if name not in part.format.buffers]
        return sum(array.numel() * array.element_size() for array in arrays)

    def bind(self, arrays, dtype: torch.dtype | None = None) -> list[tuple[str, str]]:
        """Where the tensors are that kernels take: (part, attribute); derived ones are made.

        `arrays` are `(part, step that makes it or "", name)`, in the order of the answer. Copies of values
        are in `dtype`, by default in the weight's.
        """
        found = []
        for part, step, name in arrays:
            if step:
                name = self._part(part).require(step, name, dtype)
            found.append((part, "bitmap" if name == "valid" else name))
        return found

    def validate(self) -> None:
        """Raise `DataError`, with the array and the place, unless all arrays are well formed, derived ones included."""
        self.packed().validate()
        for _, part in self._named_parts():
            pattern = part.packed().pattern
            for key, names in part.derived.items():
                for name, tensor in part._arrays_of(pattern, key, part.values).items():
                    held = as_array(part.tensor(names[name]))
                    if held.dtype != tensor.dtype or not torch.equal(held, tensor):
                        raise DataError(
                            f"'{names[name]}' is not what follows from the pattern; set_packed() makes it again"
                        )

    def set_packed(self, packed: PackedTensor) -> None:
        """Another pattern and its values, of the same shape and format, on the weight's device, in its integer types.

        Where it has as many slots, all arrays stay where they are and hold the new numbers. Raises `DataError` where
        shape or format differ, and where a captured CUDA graph walks an array that would have to move. Where
        `Schedule.attach` gave the weight followers, take `s[h].resparsify` instead, so that they follow.
        """
        made = self.replacements(packed)
        self.sets_by_hand += 1
        self.take(made, packed.pattern)

    def replacements(self, packed: PackedTensor, derives: bool = True) -> list[Replacement]:
        """Another pattern and its values, made and checked, for `take` to put in. Raises as `set_packed`.

        `derives` as in `Replacement`.
        """
        if without_widths(packed.format) != without_widths(self.format) or packed.shape != self.packed_shape:
            raise DataError(
                f"the weight is {list(self.packed_shape)} in '{self.format}', not {list(packed.shape)} in "
                f"'{packed.format}'"
            )
        packed = packed.to(self.device)
        made = []
        for name, structure in packed.pattern.parts.items():
            part = self._part(name)
            made.append(Replacement(part, part.typed(structure), packed.values_by_part[name], derives=derives))
        return made

    def take(self, replacements: list[Replacement], pattern: Pattern) -> None:
        """Put in what `replacements` made, which has this pattern; nothing here can fail."""
        for each in replacements:
            each.write()
        self._uneven = revision(self._parts()), pattern.uneven

    def follow_graph(self, uneven: tuple[bool, ...]) -> None:
        """All tensors hold another pattern of the same sizes, with what is derived from it: a CUDA graph wrote it."""
        for part in self._parts():
            part.note_written()
        self._uneven = revision(self._parts()), uneven

    def dense_state(self, dense: torch.Tensor) -> dict[str, torch.Tensor]:
        """The values that a dense weight has at this pattern's entries, by name of the Parameter."""
        if tuple(dense.shape) != tuple(self.shape):
            raise DataError(f"the dense weight has shape {list(dense.shape)}, the packed one {list(self.shape)}")
        values = self.packed().pattern.gather(dense.reshape(self.packed_shape))
        return {f"{name}.values": v for name, v in values.items()} if isinstance(values, dict) else {"values": values}

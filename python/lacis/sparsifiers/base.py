# SPDX-License-Identifier: Apache-2.0
"""The promise of a sparsifier: a bool mask of a tensor's shape, which says what is kept."""

from __future__ import annotations

import copy
import inspect

import torch

from ..errors import DataError, FormatError, ScheduleError
from ..patterns.mask import check_mask
from ..patterns.plain import check_plain
from .attention.rule import PatternRule
from .choose import blocked
from .ramp import Ramp


_PLAIN = (bool, int, float, str, type(None))  # what is left out of a text where it is the default


class Sparsifier:
    """Base of all sparsifiers. One of your own answers a mask:

    >>> import torch
    >>> class Positive(Sparsifier):
    ...     def mask(self, tensor):
    ...         return tensor > 0
    >>> Positive()(torch.tensor([-1.0, 2.0])).tolist()
    [False, True]
    """

    needs_block = False  # chooses blocks, whose sizes come from `.block(...)`
    counts = False  # keeps equally many entries (blocks) of all tensors of one shape
    sees_values = False  # does `Schedule.calibrate` show it what passes an edge? Then `seen` and `settled` say what for

    @property
    def is_settled(self) -> bool:
        """Does it know all that it chooses by?"""
        return True

    wants_gram = False  # does `solve`, where it has one, read `inputs.gram`?

    @property
    def reads_inputs(self) -> bool:
        """Has it `solve(tensor, inputs)` beside `mask`, which `Schedule.calibrate` asks instead? See `Calibrated`."""
        return callable(getattr(self, "solve", None))

    def mask(self, tensor: torch.Tensor) -> torch.Tensor:
        """bool tensor of the shape and device of `tensor`: True where an entry is kept."""
        raise NotImplementedError(f"'{type(self).__name__}' has no mask(self, tensor)")

    def due(self) -> range | None:
        """The steps after which the pattern is chosen again: those of the `Ramp` among its arguments, or None."""
        return next((value.when for value in vars(self).values() if isinstance(value, Ramp)), None)

    def at(self, step: int) -> "Sparsifier":
        """This sparsifier with each `Ramp` among its arguments at its value of a step."""
        ramps = {name: value for name, value in vars(self).items() if isinstance(value, Ramp)}
        if not ramps:
            return self
        then = copy.copy(self)
        vars(then).update({name: ramp(step) for name, ramp in ramps.items()})
        return then

    def change(self, view) -> tuple[torch.Tensor, torch.Tensor]:
        """Which of the stored places of a `View` are kept (int64 indices), and which others come (int64 positions).

        By default what the mask of the present weight says.
        """
        mask = self(view.dense())
        if view.block is not None:
            mask = blocked(mask.to(torch.uint8), view.block).any(-1)
        mask = mask.reshape(-1)
        keep = mask[view.positions].nonzero().reshape(-1)
        grown = mask.index_fill(0, view.positions, False)
        return keep, grown.nonzero().reshape(-1)

    def with_block(self, sizes) -> "Sparsifier":
        """This sparsifier knowing the block sizes of `.block(...)`; element sparsifiers answer themselves."""
        return self

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        """The checked mask. Raises `DataError` for a wrong shape, dtype or device, and as `check_plain`."""
        check_plain("the tensor", tensor)
        mask = self.at(0).mask(tensor.detach())
        try:
            check_mask(mask, tensor)
        except DataError as error:
            raise DataError(f"sparsifier '{type(self).__name__}': {error.message}") from None
        return mask

    def argument(self, name: str):
        """What the constructor was given under this name: an attribute of that name."""
        return getattr(self, name)

    def __repr__(self) -> str:
        known = inspect.signature(type(self).__init__).parameters
        is_default = lambda name, value: name in known and isinstance(value, _PLAIN) and value == known[name].default
        given = {k: v for k, v in vars(self).items() if not isinstance(v, torch.Tensor) and not is_default(k, v)}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


class BlockSparsifier(Sparsifier):
    """Base of sparsifiers that keep or drop whole blocks."""

    needs_block = True
    block: tuple[int, ...] | None = None

    def with_block(self, sizes):
        sizes = tuple(int(size) for size in sizes)
        if self.block is not None and self.block != sizes:
            raise FormatError(
                f"'{type(self).__name__}' has blocks of {self.block}, .block() says {sizes}; give one of them"
            )
        bound = copy.copy(self)
        bound.block = sizes
        return bound

    def known_block(self, tensor: torch.Tensor) -> tuple[int, ...]:
        if self.block is None:
            raise FormatError(f"'{type(self).__name__}' needs a block; call .block(b0, b1), or give block=(b0, b1)")
        if len(self.block) != tensor.ndim:
            raise FormatError(f"blocks of {len(self.block)} axes do not fit a tensor of {tensor.ndim}")
        return self.block


def as_sparsifier(sparsifier) -> Sparsifier:
    """A sparsifier or a rule from an instance, a class, a bool mask or a pattern. Raises `ScheduleError`."""
    if isinstance(sparsifier, type) and issubclass(sparsifier, (Sparsifier, PatternRule)):
        try:
            return sparsifier()
        except TypeError as error:
            raise ScheduleError(f"'{sparsifier.__name__}' needs arguments: {error}") from None
    if isinstance(sparsifier, (Sparsifier, PatternRule)):
        return sparsifier
    from ..patterns import Pattern
    from .given import Given

    if isinstance(sparsifier, (torch.Tensor, Pattern)):
        return Given(sparsifier)
    raise ScheduleError(f"expected a sparsifier, not {type(sparsifier).__name__}; subclass lacis.Sparsifier")

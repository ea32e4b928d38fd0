# SPDX-License-Identifier: Apache-2.0
"""The promise of a pattern rule: which blocks of queries and keys meet, for any number of heads and lengths."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ...errors import DataError, ScheduleError
from ...patterns.tokens import new_token


class PatternRule:
    """Base of the patterns of attention. One of your own answers a bool tensor over blocks:

    >>> class Diagonal(PatternRule):
    ...     def layout(self, heads, q, k, block):
    ...         rows, columns = self.grid(q, k, block)
    ...         return torch.eye(rows, columns, dtype=torch.bool)[None]
    >>> Diagonal().layout(8, 128, 100, 64).tolist()
    [[[True, False], [False, True]]]

    `layout(heads, q, k, block) -> bool [heads | 1, nq, nk]`: heads, lengths and the side of a block (or both sides) in,
    one layout for all heads or one for each out, on the CPU. `mask(b, h, i, j) -> bool`, where it is defined, says
    which entries of kept blocks count, as the mask functions of flex_attention do. `block` is the side where the
    caller names none. Rules that follow the data answer `blocks(q, k)` instead, int32 or int64
    [B | 1, H | Hk | 1, nq, K] on the device of q, the numbers of the key blocks that each block of queries meets, in
    any order; -1 pads, and what is there twice counts once.
    """

    block = 64
    mask = None
    blocks = None
    by_position = False
    """Does it go by where a query and a key stand in one sequence, counted from 0?"""
    pure = False
    """Do its fields alone, numbers, words and tuples of them, say what it answers? Then rules of the same fields share
    their patterns, also where one is made anew at each call. A subclass that changes what is answered says it again."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.pure = vars(cls).get("pure", False)

    def __new__(cls, *args, **options):
        made = super().__new__(cls)
        made._token = new_token(made)  # what compiled graphs know it by; copies have their own
        return made

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_token"}

    def layout(self, heads: int, q: int, k: int, block) -> torch.Tensor:
        if self.blocks is not None:
            raise ScheduleError(f"{type(self).__name__} follows the queries and keys; call blocks(q, k)")
        raise NotImplementedError(f"'{type(self).__name__}' has no layout(self, heads, q, k, block)")

    def entry_mask(self, q: int, k: int, block):
        """What says which entries of kept blocks count, for these lengths; None where all do."""
        return self.mask

    def mask_of_shape(self, shape: tuple[int, int, int, int], block, device) -> Callable | None:
        """The same for (B, H, Sq, Sk), of tensors on the device, made once for a shape; None: ask `entry_mask`."""
        return None

    @staticmethod
    def sides(block) -> tuple[int, int]:
        """The sides of a block, from one number or two."""
        sides = (block, block) if isinstance(block, int) else tuple(block)
        if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
            raise DataError(f"a block is a positive number or two, not {block!r}")
        return sides

    @classmethod
    def grid(cls, q: int, k: int, block) -> tuple[int, int]:
        """How many blocks the lengths have, the last ones maybe in part."""
        rows, columns = cls.sides(block)
        return -(-q // rows), -(-k // columns)

    @classmethod
    def ranges(cls, q: int, k: int, block):
        """First and last query of each row of blocks [nq, 1], first and last key of each column [1, nk]."""
        found = []
        for length, side in zip((q, k), cls.sides(block)):
            first = torch.arange(0, length, side)
            found += [first, (first + side).clamp(max=length) - 1]
        return found[0][:, None], found[1][:, None], found[2][None], found[3][None]

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({fields})"


def positive(**numbers) -> None:
    """Raise `DataError` for what is no whole number above 0."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise DataError(f"{name} must be a positive whole number, not {number!r}")


def at_least_zero(**numbers) -> None:
    """Raise `DataError` for what is no whole number, 0 included."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise DataError(f"{name} must be a whole number, 0 or more, not {number!r}")

# SPDX-License-Identifier: Apache-2.0
"""A digit of an axis: the part of its coordinate that one level walks."""

from __future__ import annotations

import dataclasses

from ..errors import FormatError


def quotient(number, by: int):
    """number // by, of an integer or a tensor: a division takes several times as long as a shift."""
    return number // by if by < 1 or by & (by - 1) else number >> (by.bit_length() - 1)


def remainder(number, by: int):
    """number % by, of an integer or a tensor."""
    return number % by if by < 1 or by & (by - 1) else number & (by - 1)


@dataclasses.dataclass(frozen=True)
class Digit:
    """`(axis floordiv div) mod mod`; `mod == 0` means unbounded (the most significant digit).

    `axis` is the number of an axis, or `rank + n` for the n-th binding of the format.

    >>> Digit(0, div=16).text(("i", "j")), Digit(1, mod=16).text(("i", "j"))
    ('i floordiv 16', 'j mod 16')
    """

    axis: int
    div: int = 1
    mod: int = 0

    def __post_init__(self):
        if self.div < 1 or self.mod < 0:
            raise FormatError(f"a block size must be positive, not {min(self.div, self.mod)}")

    def extent(self, shape) -> int:
        """How many values the digit takes on axes of the lengths `shape`."""
        return self.mod if self.mod else -(-shape[self.axis] // self.div)

    def of(self, coordinate):
        """The digit of an axis coordinate (an integer or a tensor of them)."""
        if self.div != 1:
            coordinate = quotient(coordinate, self.div)
        return remainder(coordinate, self.mod) if self.mod else coordinate

    def block(self, size: int) -> tuple["Digit", "Digit"]:
        """The outer and inner digit after cutting this one into blocks of `size`."""
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise FormatError(f"a block size must be a positive integer, not {size!r}")
        if self.mod % size:
            raise FormatError(f"a block of {size} does not divide the block of {self.mod} around it")
        return (Digit(self.axis, self.div * size, self.mod // size), Digit(self.axis, self.div, size))

    def within(self, outer: "Digit") -> "Digit":
        """This digit of an axis which is itself the digit `outer` of another axis."""
        if outer.mod == 0:
            return Digit(outer.axis, outer.div * self.div, self.mod)
        left, rest = divmod(outer.mod, self.div)
        if rest or (self.mod and left % self.mod):
            raise FormatError(
                f"a block of {self.div * max(self.mod, 1)} does not divide the block of {outer.mod} around it"
            )
        return Digit(outer.axis, outer.div * self.div, self.mod or left)

    def text(self, names) -> str:
        words = [names[self.axis]]
        if self.div != 1:
            words.append(f"floordiv {self.div}")
        if self.mod:
            words.append(f"mod {self.mod}")
        return " ".join(words)

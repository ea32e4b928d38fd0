# SPDX-License-Identifier: Apache-2.0
"""The random bits of a seed and coordinates as MLIR text: `lacis.capture.philox` in 32-bit arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from ..capture.philox import ADD, APART, MULTIPLY, ROUNDS


class Philox:
    """`fresh` writes an operation and answers the name of its result."""

    def __init__(self, fresh: Callable[[str], str]):
        self.fresh = fresh

    def kept(self, limit: int, seed: str, b: str, h: str, i: str, j: str) -> str:
        """Are the bits of the place, whose coordinates are i32, not below the limit? `seed` is i64."""
        apart, others = self.constant(APART), self.constant(~APART)
        counters = [self.op("andi", j, others), self.op("andi", i, others), h, b]
        words = self.words(self.halves(seed), counters)
        zero = self.constant(0)
        below, beside = (
            self.fresh(f"arith.cmpi ne, {self.op('andi', place, apart)}, {zero} : i32") for place in (i, j)
        )
        upper, lower = (self.fresh(f"arith.select {beside}, {words[n + 1]}, {words[n]} : i32") for n in (0, 2))
        bits = self.fresh(f"arith.select {below}, {lower}, {upper} : i32")
        return self.fresh(f"arith.cmpi uge, {bits}, {self.constant(limit)} : i32")

    def words(self, key: tuple[str, str], x: list[str]) -> list[str]:
        """The keys of a round are each one sum from the seed, not from the round before, so that none has to wait."""
        for n in range(ROUNDS):
            (high0, low0), (high2, low2) = (self.product(x[at], by) for at, by in zip((0, 2), MULTIPLY))
            own = [self.op("addi", word, self.constant(n * add)) if n else word for word, add in zip(key, ADD)]
            x = [self.both(high2, x[1], own[0]), low2, self.both(high0, x[3], own[1]), low0]
        return x

    def both(self, a: str, b: str, c: str) -> str:
        return self.op("xori", self.op("xori", a, b), c)

    def product(self, a: str, by: int) -> tuple[str, str]:
        """The high and the low word."""
        wide = self.fresh(f"arith.extui {a} : i32 to i64")
        factor = self.fresh(f"arith.constant {by} : i64")
        low, high = self.halves(self.fresh(f"arith.muli {wide}, {factor} : i64"))
        return high, low

    def halves(self, wide: str) -> tuple[str, str]:
        """The low and the high word."""
        shift = self.fresh("arith.constant 32 : i64")
        low = self.fresh(f"arith.trunci {wide} : i64 to i32")
        return low, self.fresh(f"arith.trunci {self.fresh(f'arith.shrui {wide}, {shift} : i64')} : i64 to i32")

    def op(self, name: str, a: str, b: str) -> str:
        return self.fresh(f"arith.{name} {a}, {b} : i32")

    def constant(self, value: int) -> str:
        """As the signed number that has its 32 bits."""
        bits = value & 0xFFFFFFFF
        return self.fresh(f"arith.constant {bits - 2**32 if bits >= 2**31 else bits} : i32")

# SPDX-License-Identifier: Apache-2.0
"""Scalar arithmetic as MLIR text: numbers, and what activations are made of."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence


def number(value: float, type: str) -> str:
    """A constant with its type, in digits where it has them.

    >>> number(0.5, "f32"), number(1e-5, "f64"), number(float("-inf"), "f32"), number(0, "i8")
    ('0.5 : f32', '1.0e-05 : f64', '0xFF800000 : f32', '0 : i8')
    """
    if type.startswith("i"):
        return f"{int(value)} : {type}"
    if not math.isfinite(value):
        bits = struct.pack(">d" if type == "f64" else ">f", value).hex().upper()
        return f"0x{bits} : {type}"
    digits, e, exponent = repr(float(value)).partition("e")
    return f"{digits if '.' in digits else digits + '.0'}{e}{exponent} : {type}"


class Arithmetic:
    """Writes operations on one type, each into a new name; approximated where a result is rounded to the type `half`.

    >>> lines = []
    >>> Arithmetic("f32", lines.append).positive("%x")
    '%e1'
    >>> lines
    ['%e0 = arith.constant 0.0 : f32', '%e1 = arith.maximumf %x, %e0 : f32']
    """

    def __init__(self, type: str, write: Callable[[str], None], half: str | None = None):
        self.type = type
        self.write = write
        self.half = half
        self.count = 0

    def op(self, text: str, type: str | None = None) -> str:
        name = f"%e{self.count}"
        self.count += 1
        self.write(f"{name} = {text}{type if type is not None else ' : ' + self.type}")
        return name

    def constant(self, value: float) -> str:
        return self.op(f"arith.constant {number(value, self.type)}", "")

    def add(self, a: str, b: str) -> str:
        return self.op(f"arith.addf {a}, {b}")

    def multiply(self, a: str, b: str) -> str:
        return self.op(f"arith.mulf {a}, {b}")

    def function(self, name: str, x: str) -> str:
        return self.op(f"math.{name} {x}{' fastmath<afn>' if self.half else ''}")

    def divide(self, a: str, b: str) -> str:
        return self.op(f"arith.divf {a}, {b}{' fastmath<afn>' if self.half else ''}")

    def positive(self, x: str) -> str:
        """max(x, 0), where NaN stays NaN."""
        return self.op(f"arith.maximumf {x}, {self.constant(0.0)}")

    def half_times(self, x: str, y: str) -> str:
        """x / 2 * y."""
        return self.multiply(self.multiply(x, self.constant(0.5)), y)

    def divided_by_one_plus_exp(self, x: str, y: str) -> str:
        """x / (1 + exp(y))."""
        power = self.function("exp", y)
        return self.divide(x, self.add(self.constant(1.0), power))

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """The sum of the coefficients times x to the power of their place."""
        result = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.add(self.multiply(result, x), self.constant(coefficient))
        return result

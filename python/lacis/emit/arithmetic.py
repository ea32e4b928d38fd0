# SPDX-License-Identifier: Apache-2.0
"""Scalar arithmetic as MLIR text: numbers, and the activations by torch's formulas."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable


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
    """Writes operations on one type, each into a new name.

    >>> lines = []
    >>> Arithmetic("f32", lines.append).activation("silu", "%x")
    '%e4'
    >>> lines[0], lines[-1]
    ('%e0 = arith.negf %x : f32', '%e4 = arith.divf %x, %e3 : f32')
    """

    def __init__(self, type: str, write: Callable[[str], None]):
        self.type = type
        self.write = write
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

    def activation(self, name: str, x: str) -> str:
        return _ACTIVATIONS[name](self, x)


def _relu(a: Arithmetic, x: str) -> str:
    return a.op(f"arith.maximumf {x}, {a.constant(0.0)}")


def _half_times_one_plus(a: Arithmetic, x: str, y: str) -> str:
    """x * 0.5 * (1 + y)"""
    return a.multiply(a.multiply(x, a.constant(0.5)), a.add(a.constant(1.0), y))


def _gelu(a: Arithmetic, x: str) -> str:
    return _half_times_one_plus(a, x, a.op(f"math.erf {a.multiply(x, a.constant(math.sqrt(0.5)))}"))


def _gelu_tanh(a: Arithmetic, x: str) -> str:
    cube = a.multiply(a.multiply(x, x), x)
    inner = a.add(x, a.multiply(a.constant(0.044715), cube))
    return _half_times_one_plus(a, x, a.op(f"math.tanh {a.multiply(a.constant(math.sqrt(2 / math.pi)), inner)}"))


def _silu(a: Arithmetic, x: str) -> str:
    negative = a.op(f"arith.negf {x}")
    power = a.op(f"math.exp {negative}")
    return a.op(f"arith.divf {x}, {a.add(a.constant(1.0), power)}")


_ACTIVATIONS = {"relu": _relu, "gelu": _gelu, "gelu_tanh": _gelu_tanh, "silu": _silu}

# SPDX-License-Identifier: Apache-2.0
"""Scalar arithmetic as MLIR text: numbers, and the activations by torch's formulas."""

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
    >>> Arithmetic("f32", lines.append).activation("silu", "%x")
    '%e4'
    >>> lines[0], lines[-1]
    ('%e0 = arith.negf %x : f32', '%e4 = arith.divf %x, %e3 : f32')
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

    def activation(self, name: str, x: str) -> str:
        return _ACTIVATIONS[name](self, x)


def _relu(a: Arithmetic, x: str) -> str:
    return a.op(f"arith.maximumf {x}, {a.constant(0.0)}")


def _half_times(a: Arithmetic, x: str, y: str) -> str:
    return a.multiply(a.multiply(x, a.constant(0.5)), y)


# log2 of the normal distribution's tail beyond x >= 0, to 2^-11.4 and 2^-18.2 up to 6; falls for ever
_LOG2_OF_TAIL = {
    "bf16": (-1.00053179, -1.14439976, -0.472785635, -0.0428327485, 0.00446760799, -0.000201684487),
    "f16": (
        *(-0.999995295, -1.15125104, -0.458464397, -0.0539600663),
        *(0.00850788970, -0.000930524569, 6.15982619e-05, -1.834981e-06),
    ),
}
_END_OF_TAIL = 16.0


def _polynomial(a: Arithmetic, x: str, coefficients: Sequence[float]) -> str:
    result = a.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = a.add(a.multiply(result, x), a.constant(coefficient))
    return result


def _gelu(a: Arithmetic, x: str) -> str:
    """x / 2 * (1 + erf(x / sqrt 2)); approximated, max(x, 0) - |x| * tail(|x|), which keeps small results."""
    if a.half:
        size = a.op(f"arith.minimumf {a.op(f'math.absf {x}')}, {a.constant(_END_OF_TAIL)}")
        tail = a.function("exp2", _polynomial(a, size, _LOG2_OF_TAIL[a.half]))
        return a.op(f"arith.subf {_relu(a, x)}, {a.multiply(size, tail)}")
    error = a.function("erf", a.multiply(x, a.constant(math.sqrt(0.5))))
    return _half_times(a, x, a.add(a.constant(1.0), error))


def _gelu_tanh(a: Arithmetic, x: str) -> str:
    """x / 2 * (1 + tanh(y)), which is x / (1 + exp(-2 y))."""
    cube = a.multiply(a.multiply(x, x), x)
    inner = a.add(x, a.multiply(a.constant(0.044715), cube))
    if a.half:
        return _divided_by_one_plus_exp(a, x, a.multiply(a.constant(-2 * math.sqrt(2 / math.pi)), inner))
    hyperbolic = a.function("tanh", a.multiply(a.constant(math.sqrt(2 / math.pi)), inner))
    return _half_times(a, x, a.add(a.constant(1.0), hyperbolic))


def _silu(a: Arithmetic, x: str) -> str:
    return _divided_by_one_plus_exp(a, x, a.op(f"arith.negf {x}"))


def _divided_by_one_plus_exp(a: Arithmetic, x: str, y: str) -> str:
    power = a.function("exp", y)
    return a.divide(x, a.add(a.constant(1.0), power))


_ACTIVATIONS = {"relu": _relu, "gelu": _gelu, "gelu_tanh": _gelu_tanh, "silu": _silu}

# SPDX-License-Identifier: Apache-2.0
"""A value that a kernel will know: each operator on it writes an operation."""

from __future__ import annotations

from ...errors import FormatError

INDEX, BIT = "index", "i1"


class Symbol:
    """A number, or truth value, that a kernel will know."""

    __hash__ = None

    def __init__(self, code, name: str, type: str):
        self.code, self.name, self.type = code, name, type
        self.scope = code.scopes[-1]

    def _binary(self, other, operation, swap=False):
        pair = (other, self) if swap else (self, other)
        return self.code.binary(operation, *pair)

    def __add__(self, other):
        return self._binary(other, "arith.addi")

    def __radd__(self, other):
        return self._binary(other, "arith.addi", True)

    def __sub__(self, other):
        return self._binary(other, "arith.subi")

    def __rsub__(self, other):
        return self._binary(other, "arith.subi", True)

    def __mul__(self, other):
        return self._binary(other, "arith.muli")

    def __rmul__(self, other):
        return self._binary(other, "arith.muli", True)

    def __floordiv__(self, other):
        return self.code.divided(self, other)

    def __rfloordiv__(self, other):
        return self.code.divided(other, self)

    def __mod__(self, other):
        return self.code.remainder(self, other)

    def __rmod__(self, other):
        return self.code.remainder(other, self)

    def __lshift__(self, other):
        return self._binary(other, "arith.shli")

    def __rlshift__(self, other):
        return self._binary(other, "arith.shli", True)

    def __rshift__(self, other):
        return self._binary(other, "arith.shrsi")

    def __rrshift__(self, other):
        return self._binary(other, "arith.shrsi", True)

    def __and__(self, other):
        return self.code.bitwise("arith.andi", self, other)

    __rand__ = __and__

    def __or__(self, other):
        return self.code.bitwise("arith.ori", self, other)

    __ror__ = __or__

    def __xor__(self, other):
        return self.code.bitwise("arith.xori", self, other)

    __rxor__ = __xor__

    def __neg__(self):
        return self._binary(0, "arith.subi", True)

    def __invert__(self):
        return self ^ (True if self.type == BIT else -1)

    def __eq__(self, other):
        return self.code.compare("eq", self, other)

    def __ne__(self, other):
        return self.code.compare("ne", self, other)

    def __lt__(self, other):
        return self.code.compare("slt", self, other)

    def __le__(self, other):
        return self.code.compare("sle", self, other)

    def __gt__(self, other):
        return self.code.compare("sgt", self, other)

    def __ge__(self, other):
        return self.code.compare("sge", self, other)

    def _refuse(self, what: str):
        raise FormatError(
            f"{self.code.what}: {what} a value that is known only in the kernel; "
            "write lacis.where, lacis.fori or lacis.whilei, and '&', '|', '~' for 'and', 'or', 'not'"
        )

    def __bool__(self):
        self._refuse("Python branches on")

    def __index__(self):
        self._refuse("Python asks for")

    __int__ = __float__ = __index__

    def __iter__(self):
        self._refuse("Python goes through")

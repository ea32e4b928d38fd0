# SPDX-License-Identifier: Apache-2.0
"""Code coordinate: which n of m coordinates a group has, as a few bits an entry (2:4)."""

import dataclasses
import math

import torch

from ..level import Coordinate, register

_MOST = 256


@register
@dataclasses.dataclass(frozen=True)
class Code(Coordinate):
    """`code`; `structured<n>` is `fixed<n>*code`.

    Codes of 1, 2, 4 or 8 bits lie side by side in bytes, in the order of positions, the first in the lowest bits. They
    ascend inside a group; one that does not says that no entry follows. A group without entries has m - 1, 0, 0, ...;
    one of m has the code m for none.
    """

    name = "code"
    has_code = True

    def buffers(self):
        return ("code",)

    def width_of(self, buffer):
        return "i8" if buffer == "code" else None

    def refuses_under(self, extent, digits):
        n, m = extent.capacity, math.prod(digit.mod for digit in digits)
        if n is None:
            return "'code' needs a fixed number of entries: use 'structured<n>'"
        if not m:
            return "'code' needs groups of a known size: block the axis, 'j mod 4'"
        if _codes(n, m) > _MOST:
            return f"a group has {_MOST} codes at the most: block the axis"
        return f"a group of {m} coordinates does not hold {n} entries" if n > m else None

    def place(self, fibre, placed):
        _, n = placed.shape
        count = fibre.starts().diff()
        last = torch.zeros(fibre.parents, dtype=torch.int64, device=fibre.crd.device)
        last = last.scatter_reduce(0, fibre.parent, fibre.crd, "amax")
        codes = last[:, None].repeat(1, n)
        codes[:, 0] = torch.where(count == 0, fibre.size - (n > 1), codes[:, 0])
        codes = codes.reshape(-1)
        codes[placed.pos] = fibre.crd
        return {"code": _joined(codes, _bits(n, fibre.size))}

    def read(self, buffers, positions, size):
        codes = self._codes(buffers, positions, size)
        if positions.width == 1:
            return codes.clamp(max=size - 1), codes < size
        place = torch.arange(positions.slots, device=codes.device)
        first = positions.offset == 0
        other = codes[torch.where(first, place + 1, place - 1)] if codes.numel() else codes
        return codes, torch.where(first, other >= codes, codes > other)

    @staticmethod
    def _codes(buffers, positions, size):
        """int64 [slots]"""
        bits = _bits(positions.width, size)
        shifts = torch.arange(0, 8, bits, device=buffers["code"].device)
        codes = (buffers["code"].long()[:, None] >> shifts) & ((1 << bits) - 1)
        return codes.reshape(-1)[: positions.slots]

    def check(self, check, buffers, level, positions, size):
        code, bits = buffers["code"], _bits(positions.width, size)
        want = -(-positions.slots * bits // 8)
        if tuple(code.shape) != (want,):
            check.fail("code", f"must have shape [{want}], {8 // bits} codes in each byte, not {list(code.shape)}")
        codes = self._codes(buffers, positions, size)
        large = codes >= _codes(positions.width, size)
        check.none("code", _bytes(large, bits), f"a code is out of range, the group has {size} coordinates")
        _, valid = self.read(buffers, positions, size)
        again = torch.zeros_like(valid)
        again[1:] = valid[1:] & ~valid[:-1] & (positions.offset[1:] > 0)
        check.none("code", _bytes(again, bits), "a code ascends behind the one that ends its group")


def _codes(n: int, m: int) -> int:
    """How many codes there are: one of m needs one for none."""
    return m + (n == 1)


def _bits(n: int, m: int) -> int:
    """Bits of a code: 1, 2, 4 or 8."""
    return next(bits for bits in (1, 2, 4, 8) if _codes(n, m) <= 1 << bits)


def _joined(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Bytes, from -128 on, of codes that lie side by side."""
    each = 8 // bits
    rows = torch.nn.functional.pad(codes, (0, -codes.numel() % each)).reshape(-1, each)
    byte = (rows << torch.arange(0, 8, bits, device=codes.device)).sum(1)
    return torch.where(byte < 128, byte, byte - 256)


def _bytes(flags: torch.Tensor, bits: int) -> torch.Tensor:
    """bool [bytes]: one of the codes in each byte is flagged."""
    each = 8 // bits
    return torch.nn.functional.pad(flags, (0, -flags.numel() % each)).reshape(-1, each).any(1)

# SPDX-License-Identifier: Apache-2.0
"""Bitmap coordinate: one bit for each coordinate of the fibre, in words of 32 bits."""

import dataclasses
import math

import torch

from ...errors import DataError
from ..level import Coordinate, register

_WORD = 32
_MOST = 1024


@register
@dataclasses.dataclass(frozen=True)
class Bitmap(Coordinate):
    """`bitmap`: `bits[parent * words + c // 32]` has a bit for coordinate c, the lowest for the first.

    With `var` values are packed, with `fixed<n>` there is room for n, with `full` for all.
    """

    name = "bitmap"
    has_code = True

    def buffers(self):
        return ("bits",)

    def width_of(self, buffer):
        return "i32" if buffer == "bits" else None

    def refuses_under(self, extent, digits):
        if all(digit.mod for digit in digits) and math.prod(digit.mod for digit in digits) > _MOST:
            return _too_large("a bitmap")
        return None

    def place(self, fibre, placed):
        if fibre.size > _MOST:
            raise DataError(_too_large(f"'{fibre.level.kind}' over {fibre.size} coordinates"))
        words = _words(fibre.size)
        bits = torch.zeros(fibre.parents * words, dtype=torch.int64, device=fibre.crd.device)
        crd = fibre.crd[fibre.first]
        bits.scatter_add_(0, fibre.parent[fibre.first] * words + crd // _WORD, torch.ones_like(crd) << crd % _WORD)
        return {"bits": torch.where(bits < 1 << (_WORD - 1), bits, bits - (1 << _WORD))}  # signed

    def read(self, buffers, positions, size):
        present = self._present(buffers, size)
        if positions.covers:
            return positions.offset, present[:, :size].reshape(-1)
        parent, crd = present.nonzero(as_tuple=True)
        if not crd.numel():
            return torch.zeros_like(positions.offset), torch.zeros_like(positions.offset, dtype=torch.bool)
        count = present.sum(1)
        valid = positions.offset < count[positions.parent]
        first = torch.cumsum(count, 0) - count
        at = torch.where(valid, first[positions.parent] + positions.offset, 0)
        return torch.where(valid, crd[at], 0), valid

    @staticmethod
    def _present(buffers, size):
        """bool [parents, coordinates, rounded up to words]."""
        words = _words(size)
        bits = buffers["bits"].long().reshape(-1, max(words, 1), 1)
        places = torch.arange(_WORD, device=bits.device)
        return ((bits >> places) & 1).bool().reshape(-1, max(words, 1) * _WORD)

    def check(self, check, buffers, level, positions, size):
        bits, words = buffers["bits"], _words(size)
        if size > _MOST:
            check.fail("bits", _too_large(f"has a bit for each of {size} coordinates: it"))
        if tuple(bits.shape) != (check.parents * words,):
            check.fail(
                "bits", f"must have shape [{check.parents * words}], {words} under each parent, not {list(bits.shape)}"
            )
        present = self._present(buffers, size)
        beyond = present[:, size:].any(1) if words else bits != 0
        check.none("bits", _last_words(beyond, words), f"a bit lies behind the last of {size} coordinates")
        if positions.covers or not words:
            return
        count = present.sum(1)
        room = torch.bincount(positions.parent, minlength=check.parents)[: check.parents]
        wrong = count > room if level.extent.pads else count != room
        message = "as many bits as the level has positions must be set under each parent"
        check.none("bits", _last_words(wrong, words), message)


def _words(size: int) -> int:
    return -(-size // _WORD)


def _last_words(parents: torch.Tensor, words: int) -> torch.Tensor:
    """bool [words of all parents]: the last one of each parent that is said."""
    flags = torch.zeros(parents.numel(), max(words, 1), dtype=torch.bool, device=parents.device)
    flags[:, -1] = parents
    return flags.reshape(-1)


def _too_large(what: str) -> str:
    return f"{what} has bits for {_MOST} coordinates at the most: block the axis"

# SPDX-License-Identifier: Apache-2.0
"""Does a kernel, which has numbers as float32, compare and divide the ones that torch has?"""

from __future__ import annotations

import functools

import torch

from ..capture.chain import Expression
from .captures import EXACT
from .places import CONDITIONS, Whole, whole

_QUOTIENTS = ("floordiv", "mod")
_SUMS = ("add", "sub")


@functools.lru_cache(maxsize=1024)  # as many functions are known by what they say
def most_of_reads(
    body: Expression, lengths: tuple[tuple[str, int], ...], dtypes: tuple[torch.dtype, ...], wide: torch.dtype
) -> int | None:
    """The largest magnitude of whole numbers that are read for which all whole numbers are exact, a power of two.

    `dtypes` are those of reads 1, 2, and so on. None where it is not so for any, and where numbers of float64 are
    compared, or added up, that a kernel has rounded to `wide` before.
    """
    doubles = {1 + n for n, dtype in enumerate(dtypes) if dtype == torch.float64 and wide != torch.float64}
    if _rounds_before(body, doubles):
        return None
    integers = {1 + n: dtype for n, dtype in enumerate(dtypes) if not dtype.is_floating_point and dtype != torch.bool}
    most = EXACT
    while most > 0:
        reads = {number: _read(dtype, most) for number, dtype in integers.items()}
        if _has_exact_parts(body, dict(lengths), reads):
            return most
        most = most // 2 if integers else 0
    return None


def _read(dtype: torch.dtype, most: int) -> Whole:
    held = torch.iinfo(dtype)
    return Whole((max(-most, held.min), min(most, held.max)), most, dtype=dtype)


def _has_exact_parts(body: Expression, lengths: dict[str, int], reads: dict[int, Whole]) -> bool:
    """Are whole numbers small enough, and is what is divided, or compared and of coordinates alone, whole?"""
    if body[0] in ("read", "index", "number"):
        return body[0] != "index" or lengths[body[1]] <= EXACT
    found = whole(body, lengths, reads)
    if found is not None:
        return found.largest <= EXACT
    if body[0] in _QUOTIENTS or (body[0] in CONDITIONS and not _holds(body, None)) or _is_of_integers(body, reads):
        return False
    return all(_has_exact_parts(part, lengths, reads) for part in body[1:] if isinstance(part, tuple))


def _is_of_integers(body: Expression, reads: dict[int, Whole]) -> bool:
    """Is it arithmetic of whole numbers that are read, coordinates and whole constants alone, though not exact?"""
    if body[0] in ("read", "element"):
        return (body[1] if body[0] == "read" else body[1][1]) in reads
    if body[0] == "number":
        return float(body[1]).is_integer()
    if body[0] == "index":
        return True
    known = body[0] in ("add", "sub", "mul", "neg", "abs", "maximum", "minimum", "where")
    parts = body[2:] if body[0] == "where" else body[1:]
    return known and _holds(body, set(reads)) and all(_is_of_integers(part, reads) for part in parts)


def _rounds_before(body: Expression, doubles: set[int]) -> bool:
    if not doubles or not _holds(body, doubles):
        return False
    if body[0] in (*CONDITIONS, *_QUOTIENTS) or (body[0] in _SUMS and all(_holds(part, doubles) for part in body[1:])):
        return True
    return any(_rounds_before(part, doubles) for part in body[1:] if isinstance(part, tuple))


def _holds(body: Expression, numbers: set[int] | None) -> bool:
    """Does it read one of these, or any where that is None?"""
    if body[0] == "read":
        return numbers is None or body[1] in numbers
    return any(isinstance(part, tuple) and _holds(part, numbers) for part in body[1:])

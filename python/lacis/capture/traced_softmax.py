# SPDX-License-Identifier: Apache-2.0
"""Softmax and the log of its sums inside of a function that is traced."""

from __future__ import annotations

import math

from ..errors import DataError
from .chain import Expression, Read
from .traced import Traced


def _softmax(what: str, scores: Traced, letter) -> tuple[Read, Read, Read, Expression]:
    """Exponentials below the maximum, it, their sum, and 0 for a maximum of -infinity; made once for an object."""
    if not scores.sampled:
        raise DataError(f"{what}: a tensor on the pattern is needed, as an einsum with the pattern makes it")
    letters = scores.letters
    if letter not in letters and letter not in range(len(letters)):
        raise DataError(f"{what}: no axis {letter!r}; there are {', '.join(letters)}")
    letter = letter if letter in letters else letters[letter]
    trace, below = scores.trace, ("where", ("eq", ("read", 1), ("number", -math.inf)), ("number", 0.0), ("read", 1))
    if (id(scores), letter) not in trace.softmaxes:
        rest = tuple(other for other in letters if other != letter)
        read = scores.read()
        top = trace.add("m", rest, (read,), ("read", 0), False, "max")
        shares = trace.add("p", letters, (read, top), ("exp", ("sub", ("read", 0), below)), True)
        total = trace.add("l", rest, (shares,), ("read", 0), False, "add")
        trace.softmaxes[id(scores), letter] = scores, (shares, top, total)
    return *trace.softmaxes[id(scores), letter][1], below


def traced_softmax(scores: Traced, letter) -> Traced:
    """`lacis.softmax` inside of a function that is traced: exponentials, and the sum that they are divided by."""
    shares, _, total, _ = _softmax("softmax", scores, letter)
    return Traced.of(scores.trace, shares, True, total)


def traced_logsumexp(scores: Traced, letter) -> Traced:
    """`lacis.logsumexp` inside of a function that is traced: of the sum by which `softmax` of the object divides."""
    _, top, total, below = _softmax("logsumexp", scores, letter)
    none = ("eq", ("read", 0), ("number", 0.0))
    body = ("where", none, ("number", -math.inf), ("add", below, ("log", ("read", 0))))
    return Traced(scores.trace, (total, top), body, total.letters, False)

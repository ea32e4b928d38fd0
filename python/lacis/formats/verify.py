# SPDX-License-Identifier: Apache-2.0
"""What a format must satisfy: its levels cover each axis once, and each has what it hangs on."""

from __future__ import annotations

from ..errors import FormatError
from .batch import verify_batch
from .digit import Digit
from .level import Level


def verify(axes, levels, bindings) -> None:
    """Each axis is covered by its digits exactly once, and each level has what it hangs on."""
    if not levels:
        raise FormatError("a format needs at least one level")
    for number, level in enumerate(levels):
        _verify_follower(level, levels[:number], levels[number + 1 :])
    bound = len(axes) + len(bindings)
    used = {n: [] for n in range(bound)}
    for level in levels:
        for digit in level.digits:
            if digit.axis >= bound:
                raise FormatError(f"a level names axis {digit.axis}, the format has {len(axes)}")
            used[digit.axis].append(digit)
    names = [*axes, *(binding.name for binding in bindings)]
    verify_batch(axes, levels, names)
    for axis, name in enumerate(names):
        if used[axis]:
            _verify_axis(name, names, used[axis])
        elif not bindings:  # else it may follow from one
            raise FormatError(f"axis '{name}' is missing, each axis needs a level")
    _verify_bindings(names, bindings, {n for n in used if used[n]})


def _verify_bindings(names, bindings, known: set[int]) -> None:
    """Each binding has a level, and each axis has levels, or follows from one binding."""
    rank = len(names) - len(bindings)
    for number in reversed(range(rank, len(names))):
        if number not in known:
            raise FormatError(f"binding '{names[number]}' is not used by any level")
        for axis in bindings[number - rank].determines(known):
            if axis in known and axis < rank:
                raise FormatError(f"axis '{names[axis]}' is there twice: by a level, and through '{names[number]}'")
            known.add(axis)
    for axis in range(rank):
        if axis not in known:
            raise FormatError(f"axis '{names[axis]}' is missing: no level has it, and it follows from no binding")


def _verify_follower(level: Level, above, below) -> None:
    """`one` position under each parent: a parent exists, and repeats or may lack one; a link ends the format."""
    if not level.extent.follows:
        return
    if not above:
        raise FormatError(f"'{level.kind}' has no level above it to follow")
    if level.extent.stands_alone:
        if not all(inner.is_static for inner in below):
            raise FormatError(f"'{level.kind}' comes last, before the dense levels of a stored block only")
        return
    head = len(above) - 1
    while head > 0 and above[head].extent.follows and above[head].coordinate.unique:
        head -= 1
    if not level.padded and above[head].coordinate.unique:
        raise FormatError(
            f"'{level.kind}' follows '{above[head].kind}', whose coordinates are unique: "
            "write 'pad=true' here or 'unique=false' there"
        )


def _verify_axis(name, axes, digits) -> None:
    digits = sorted(digits, key=lambda d: (-d.div, d.mod != 0))
    above = 0
    for digit in digits:
        if digit.div * digit.mod != above:
            texts = "', '".join(d.text(axes) for d in digits)
            raise FormatError(f"the levels of axis '{name}' do not cover it exactly once: '{texts}'")
        above = digit.div
    if above != 1:
        raise FormatError(f"axis '{name}' lacks its innermost digit '{Digit(digits[0].axis, 1, above).text(axes)}'")

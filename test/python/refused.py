# SPDX-License-Identifier: Apache-2.0
"""The table of refusals: of which formats of the grid which operation is refused, and in which words."""

from __future__ import annotations

import re
from typing import NamedTuple


class Refusal(NamedTuple):
    """Regular expressions: found in the format's text, all of an operation's name, found in the sentence."""

    where: str
    operation: str
    sentence: str


PARSE = "parse"  # the grammar takes the text
PACK = "pack"  # a full tensor is packed
# Other operations are an expression behind the target that computes it: "cpu ij,j->i".

GRAMMAR = [
    (r"\bkind\b", "level kind 'kind' needs a symbol: write '@name'"),
    (r": link\*", "a level needs at least one digit of an axis; only 'link' has none"),
    (r"\*link\b", "do not combine: one of them is an extent and a coordinate, and stands alone"),
    (r"batch\*(?!implicit)", "'batch' stores values only, leave '.*' out"),
    (r"range\*(?!implicit)", "'range' knows its coordinates, leave '.*' out"),
    (
        r"full\*crd",
        "'full' has every coordinate, there is nothing to store: use 'dense', or 'compressed' to leave some",
    ),
    (r"full\*delta", "'full' has every coordinate, there is nothing to store: use 'dense', or 'var\\*delta'"),
    (r"(full|var)\*code", "'code' needs a fixed number of entries: use 'structured<n>'"),
    (
        r"fixed\*implicit",
        "'fixed' needs a coordinate: without one it is 'dense'; call compress\\(\\) before pack\\(\\)",
    ),
    (r"fixed\*(bitmap|code)<\?>", "'fixed' with '.*' needs a width: no array shows how long a fibre is"),
    (r"([ijk]|floordiv \d+)\)? : fixed\*code", "'code' needs groups of a known size: block the axis, 'j mod 4'"),
    (r"one\*(?!crd)", "'one' needs a stored coordinate, not '.*': use 'singleton'"),
    (
        r"var2\*(?!crd|delta)",
        "'var2' needs an array with an element for each position, '.*' has none: use 'var2\\*crd'",
    ),
    (
        r"mod 16, . mod 16, . mod 16\) : \w+\*bitmap",
        "a bitmap has bits for 1024 coordinates at the most: block the axis",
    ),
    (r"code<4096>", "a group has 256 codes at the most: block the axis"),
    (r"> \([^:]* : one\*crd", "'singleton' has no level above it to follow"),
    (r"(dense|compressed), [^:]* : one\*crd", "'singleton' follows '(dense|compressed)', whose coordinates are unique"),
    (
        r"unique=false>, . : (?!one).*singleton",
        "'singleton' follows '.*', whose coordinates are unique: write 'pad=true'",
    ),
    (
        r"> \([^:]*floordiv[^:]* : batch",
        "'. floordiv .* : batch' is of whole axes, neither of their blocks nor of what",
    ),
    (r": .*, .* : batch", "'.* : batch' must come first: the levels below it are the pattern that its values share"),
    (r"\) : batch", "'.*: batch' is of several axes: write a level 'batch' for each of them"),
    (r"> \([^:]* : batch\*implicit\)", "'.*: batch' has no level below it, so its values share no pattern"),
]

REFUSED = [
    *(Refusal(where, PARSE, sentence) for where, sentence in GRAMMAR),
    Refusal(r"\*fn\b", PACK, r"pack: level kind '.*fn' has no code yet"),
    Refusal("@my_window", PACK, "an entry lies outside of the window"),
    Refusal(r"\((i, j, k|k, j, i)\) : \w+\*bitmap", PACK, "bits for 1024 coordinates at the most: block the axis"),
]


def expected(text: str, operation: str) -> Refusal | None:
    """The first entry of the table that is of this format and operation; None where it runs."""
    return next(
        (each for each in REFUSED if re.fullmatch(each.operation, operation) and re.search(each.where, text)), None
    )

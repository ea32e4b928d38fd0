# SPDX-License-Identifier: Apache-2.0
"""Calls of `flex_attention` in a scheduled module: how they are seen, and what they say."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import threading
from collections.abc import Callable

import torch
from torch.nn.attention import flex_attention as flex

_LARGEST = 2**30  # the side of a block where a call has no BlockMask
_WANTS_OTHERS = (
    "flex_attention is asked for {}, which attention on a pattern does not make; leave it out, or leave the module out "
    "of the schedule"
)


class _Doors(threading.local):
    """How many are open in this thread."""

    count = 0


_doors = _Doors()


class _Flag:
    """True where doors are open in this thread, else what torch's flag was.

    flex_attention compiles its operator unless its flag for debugging is set; an operator that runs as it is goes
    through modes, which see it.
    """

    def __init__(self, given):
        self.given = given

    def __bool__(self) -> bool:
        return _doors.count > 0 or bool(self.given)


def _plainly(function: Callable, *given):
    return function(*given)


_ways = {"call": _plainly}


def outside_graphs(function: Callable, *given):
    """What dynamo does not trace where it compiles flex_attention alone."""
    return _ways["call"](function, *given)


def _installed() -> None:
    """Put the flag in, and let gradients on CPUs pass, which torch's kernels have not; both ask for doors."""
    # Where dynamo is not loaded nothing is compiled, and loading it takes long.
    if _ways["call"] is _plainly and "torch._dynamo" in sys.modules:
        _ways["call"] = torch.compiler.disable(_plainly)
    if isinstance(flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG, _Flag):
        return
    flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = _Flag(flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG)
    given = flex._validate_device

    def validate(query, key, value):
        if torch.compiler.is_compiling() or not _doors.count:
            given(query, key, value)

    flex._validate_device = validate


@contextlib.contextmanager
def seen():
    """Calls of flex_attention in this thread reach the mode that is on, imported by name or compiled as they may be."""
    if torch.compiler.is_compiling():
        yield
        return
    _installed()
    _doors.count += 1
    try:
        yield
    finally:
        _doors.count -= 1


operator = flex.flex_attention_hop
"""What flex_attention calls in the end, and modes see."""


@dataclasses.dataclass
class FlexCall:
    """What a call of flex_attention says besides tensors; parts that it leaves out are None."""

    score: Callable | None
    blocks: flex.BlockMask | None
    scale: float
    why_not: str | None  # what is asked for that cannot be taken

    @classmethod
    def of(cls, score, blocks: tuple, scale: float, options: dict) -> FlexCall:
        """`blocks` is `BlockMask.as_tuple()`. Options of torch's kernels say nothing here."""
        lengths, lists, sides, mask = blocks[:2], blocks[2:6], tuple(blocks[-3:-1]), blocks[-1]
        made = None
        if max(sides) < _LARGEST:
            made = flex.BlockMask(lengths, *lists, None, None, None, None, sides, mask)
        why_not = None
        if options["OUTPUT_MAX"]:
            why_not = _WANTS_OTHERS.format("largest scores (AuxRequest(max_scores=True))")
        if options["BACKEND"] == "FLASH":
            why_not = _WANTS_OTHERS.format("the kernel of kernel_options={'BACKEND': 'FLASH'}")
        return cls(None if score is flex._identity else score, made, scale, why_not)


def kept(blocks: flex.BlockMask | None, q: torch.Tensor) -> Callable | None:
    """What a BlockMask says of entries: its blocks, and the function in them."""
    if blocks is None:
        return None
    (height, width), function = blocks.BLOCK_SIZE, blocks.mask_mod
    there = blocks.to_dense().bool()
    there = there.expand(*q.shape[:2], *there.shape[-2:])

    def mask(b, h, i, j):
        stored = there[b, h, i // height, j // width]
        return stored if function is flex.noop_mask else stored & function(b, h, i, j)

    return mask


def answered(output: torch.Tensor, lse: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What the operator answers: its logs are of base 2, and flex_attention makes natural ones of them."""
    return output, lse / math.log(2), lse.new_empty(0)

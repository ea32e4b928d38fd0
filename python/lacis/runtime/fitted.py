# SPDX-License-Identifier: Apache-2.0
"""What was captured of einsums on one pattern, for the next that differ in values alone."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .. import knobs
from ..capture import KernelSpec
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.transforms import is_transformed

Captured = tuple[KernelSpec, dict[str, int]]
_KEY = "captured einsums"
_MOST = 64  # einsums and shapes on one pattern; a model's layer has few, tokens of other numbers are more


def fitted(said: tuple, operands, packed: int, capture: Callable[[], Captured]) -> Captured:
    """What `capture` finds, once for what is `said` of operands of one kind, until arrays of the pattern change.

    It finds the same for equal dtypes, shapes and devices: it looks at no values, and at a pattern as a whole.
    """
    key = kind_of_call(said, operands, packed)
    if key is None:
        return capture()
    pattern = operands[packed] if isinstance(operands[packed], Pattern) else operands[packed].pattern
    known = pattern._kept.setdefault(_KEY, {})
    try:
        found = known.get(key)
    except TypeError:  # an option that has no hash is none, as the capture says
        return capture()
    if found is None:
        found = capture()
        if len(known) >= _MOST:
            known.clear()
        known[key] = found
    return found


def kind_of_call(said: tuple, operands, packed: int) -> tuple | None:
    """All but the values; None where some operand stands for others, as in a transform or a traced graph."""
    if is_transformed() or torch.compiler.is_compiling():
        return None
    kinds = []
    for number, operand in enumerate(operands):
        if number == packed and type(operand) in (PackedTensor, Pattern):
            pattern = operand if type(operand) is Pattern else operand.pattern
            dtype = None if operand is pattern else operand.dtype
            kinds.append((dtype, operand.device, pattern.changes, pattern.uneven))
        elif type(operand) in (torch.Tensor, torch.nn.Parameter):
            kinds.append((operand.dtype, operand.shape, operand.device))
        else:
            return None
    checked = knobs.is_given("debug") and knobs.debug
    return (*said, *kinds, checked, torch.backends.cuda.matmul.fp32_precision)

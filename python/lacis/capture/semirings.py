# SPDX-License-Identifier: Apache-2.0
"""The semirings of `lacis.einsum`: what combines operands, what reduces, and what stands where nothing is stored."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import torch

from ..errors import DataError


@dataclasses.dataclass(frozen=True)
class Semiring:
    """`add` and `multiply` are operations of MLIR's arith dialect, `combine` and `reduce` the same in torch."""

    name: str
    add: str
    multiply: str
    zero: float
    combine: Callable
    reduce: str  # the mode of `torch.Tensor.scatter_reduce`


_ALL = (
    Semiring("plus_times", "arith.addf", "arith.mulf", 0.0, torch.mul, "sum"),
    Semiring("max_plus", "arith.maximumf", "arith.addf", -math.inf, torch.add, "amax"),
    Semiring("max_times", "arith.maximumf", "arith.mulf", -math.inf, torch.mul, "amax"),
    Semiring("or_and", "arith.ori", "arith.andi", 0, torch.logical_and, "amax"),
)
SEMIRINGS = {semiring.name: semiring for semiring in _ALL}


def find_semiring(name: str, dtype: torch.dtype) -> Semiring:
    """The semiring of this name. Raises `DataError` for an unknown one and for a dtype that it does not take."""
    if name not in SEMIRINGS:
        raise DataError(f"einsum: no semiring {name!r}; there are {', '.join(SEMIRINGS)}")
    if (name == "or_and") != (dtype == torch.bool):
        what = (
            "or_and takes bool operands" if name == "or_and" else f"{name} takes numbers; bool operands need 'or_and'"
        )
        raise DataError(f"einsum: {what}, not {dtype}")
    return SEMIRINGS[name]

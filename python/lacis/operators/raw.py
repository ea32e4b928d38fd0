# SPDX-License-Identifier: Apache-2.0
"""A matrix that its module's own forward multiplies with, as `F.linear(x, self.gate)` or `x @ self.proj`.

The module stays, and its parameter becomes a packed weight, which runs its products (`lacis/nn/uses.py`).
"""

from __future__ import annotations

from .linear import Linear
from .operator import operator
from .transposed_linear import TransposedLinear


@operator
class Raw(Linear):
    """`F.linear(x, w)` and `x @ w.T`."""

    name = "raw"
    in_place = True
    runs = "linear"

    def matches(self, module):
        return False  # capture looks into the forward of what no other operator matches


@operator
class TransposedRaw(TransposedLinear):
    """`x @ w`."""

    name = "transposed_raw"
    in_place = True
    runs = "transposed_linear"

    def matches(self, module):
        return False

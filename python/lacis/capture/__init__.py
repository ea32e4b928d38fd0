# SPDX-License-Identifier: Apache-2.0
"""Capture: from a scheduled site, or an einsum, to the specification of its kernel."""

from .expression import capture_einsum, parse_statement
from .sites import Captured, capture_site, kernel_spec
from .spec import KernelSpec, Operand, divisible

__all__ = [
    "Captured", "KernelSpec", "Operand", "capture_einsum", "capture_site", "divisible", "kernel_spec", "parse_statement",
]  # fmt: skip

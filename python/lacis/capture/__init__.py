# SPDX-License-Identifier: Apache-2.0
"""Capture: from a scheduled site, or an einsum, to the specification of its kernel."""

from .dtypes import DTYPES, output_dtype, wide
from .epilogue import Epilogue
from .expression import capture_einsum, check_epilogue, check_operands, packed_operand, parse_statement
from .semirings import SEMIRINGS, Semiring, find_semiring
from .sites import Captured, capture_site, kernel_spec
from .spec import KernelSpec, Operand, divisible, kind_of

__all__ = [
    "Captured", "DTYPES", "Epilogue", "KernelSpec", "Operand", "SEMIRINGS", "Semiring", "capture_einsum",
    "capture_site", "check_epilogue", "check_operands", "divisible", "find_semiring", "kernel_spec", "kind_of",
    "output_dtype", "packed_operand", "parse_statement", "wide",
]  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Emit: a kernel's specification as MLIR text, the only thing that reaches the compiler."""

from .chain import emit_chain
from .mlir import density, emit, same_kernel

__all__ = ["density", "emit", "emit_chain", "same_kernel"]

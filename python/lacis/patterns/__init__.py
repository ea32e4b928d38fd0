# SPDX-License-Identifier: Apache-2.0
"""Patterns: which entries exist, and the arrays that say so."""

from .derived import companion_arrays
from .pattern import Pattern
from .structure import Structure

__all__ = ["Pattern", "Structure", "companion_arrays"]

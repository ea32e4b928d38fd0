# SPDX-License-Identifier: Apache-2.0
"""Packing: torch tensors into formats and back."""

from .pack import pack
from .packed import PackedTensor

__all__ = ["PackedTensor", "pack"]

# SPDX-License-Identifier: Apache-2.0
"""Refuses values that do not fit a pattern."""

from __future__ import annotations

import torch

from ..errors import DataError


def check_values(name: str, values, shape, device) -> None:
    """Raise `DataError` unless `values` is a tensor of this shape on this device."""
    if not isinstance(values, torch.Tensor):
        raise DataError(f"'{name}' must be a tensor, not {type(values).__name__}")
    if tuple(values.shape) != tuple(shape):
        raise DataError(f"'{name}' must have shape {list(shape)}, not {list(values.shape)}")
    if values.device != device:
        raise DataError(f"'{name}' is on {values.device}, the pattern on {device}")

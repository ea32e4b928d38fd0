# SPDX-License-Identifier: Apache-2.0
"""What a mask must be to say which entries a tensor has."""

from __future__ import annotations

import torch

from ..errors import DataError
from .plain import check_plain


def check_mask(mask, tensor) -> None:
    """Raise `DataError` unless `mask` is bool and fits the tensor."""
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        what = mask.dtype if isinstance(mask, torch.Tensor) else type(mask).__name__
        raise DataError(f"a mask must be a bool tensor, not {what}")
    if mask.shape != tensor.shape:
        raise DataError(f"the mask has shape {list(mask.shape)}, the tensor {list(tensor.shape)}")
    if mask.device != tensor.device:
        raise DataError(f"the mask is on {mask.device}, the tensor on {tensor.device}")
    check_plain("the mask", mask)


def check_bool(mask) -> None:
    """Raise `DataError` unless `mask` is a bool tensor with an axis and values."""
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool or mask.ndim == 0:
        what = mask.dtype if isinstance(mask, torch.Tensor) else type(mask).__name__
        raise DataError(f"a mask must be a bool tensor with at least one axis, not {what}")
    if mask.device.type == "meta":
        raise DataError("a mask on meta has no values, so it names no entries; load them first")
    check_plain("the mask", mask)

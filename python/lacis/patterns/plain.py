# SPDX-License-Identifier: Apache-2.0
"""Refuses tensors whose elements cannot be looked at one by one, before any memory is taken for them."""

from __future__ import annotations

import torch

from ..errors import DataError

MOST_EXPANDED = 2**30
"""Bytes that the copies of an expanded tensor's elements may fill: more is taken for a mistake."""


def check_plain(name: str, tensor: torch.Tensor) -> None:
    """Raise `DataError` for a quantized or nested tensor, one without data, and one that was expanded beyond measure.

    `name` begins the sentence: `a mask`, `'crd1'`.

    >>> check_plain("the tensor", torch.zeros(()).expand(8, 8))
    """
    if torch.compiler.is_compiling():  # what a graph makes is plain
        return
    if tensor.is_nested:
        raise DataError(f"{name} is nested; give the tensors in it one by one (.unbind())")
    if tensor.is_quantized:
        raise DataError(f"{name} is quantized ({tensor.dtype}); give .dequantize() of it")
    if tensor.is_meta:
        raise DataError(f"{name} is on meta and has no data; load it first")
    if tensor.layout != torch.strided or 0 not in tensor.stride():
        return
    full, held = tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
    if full > max(MOST_EXPANDED, held):
        raise DataError(f"{name} is expanded: {held} bytes stand for {full}; store it in fewer elements")

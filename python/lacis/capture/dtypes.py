# SPDX-License-Identifier: Apache-2.0
"""The dtypes of kernels: those of operands, those of sums, and what a result may have."""

from __future__ import annotations

import torch

from ..errors import DataError

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def check_dtype(what: str, dtype: torch.dtype, location=None) -> None:
    """Raise `DataError` for a dtype that kernels do not have."""
    if dtype not in DTYPES:
        known = ", ".join(str(d).removeprefix("torch.") for d in DTYPES)
        raise DataError(f"{what}: {dtype} has no kernels; there are {known}", location=location)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which values of another are summed."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def output_dtype(dtype: torch.dtype, asked: torch.dtype | None) -> torch.dtype:
    """The dtype of the result on operands of `dtype`: theirs, or where `asked` that in which they are summed.

    >>> output_dtype(torch.float16, None), output_dtype(torch.float16, torch.float32)
    (torch.float16, torch.float32)

    Raises `DataError` for another one, which no kernel stores.
    """
    if asked is None or asked == dtype:
        return dtype
    if not isinstance(asked, torch.dtype):
        raise DataError(f"einsum: out_dtype is a dtype, as torch.float32, not {asked!r}")
    if asked == wide(dtype):
        return asked
    summed = f" or {wide(dtype)}, in which they are summed" if wide(dtype) != dtype else ""
    raise DataError(
        f"einsum: out_dtype is {asked}; no kernel stores it from operands of {dtype}, only {dtype}{summed}; cast the "
        f"result with .to({asked}), or the operands"
    )

# SPDX-License-Identifier: Apache-2.0
"""What `lacis.attention` takes, and what it refuses by name."""

from __future__ import annotations

import math
import numbers

import torch

from ..errors import DataError
from ..nn.recorded import takes_part
from ..schedule.schedule import check_target

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_NUMBERS = (numbers.Real, torch.SymInt, torch.SymFloat)


def checked(q, k, v, scale, dropout, empty) -> tuple[float, float]:
    """The scale and the dropout; raises `DataError` for what does not fit together."""
    check_operands(q, k, v)
    dropout = dropout if type(dropout) is float else _number("dropout", dropout)
    if not 0 <= dropout < 1:
        raise DataError(f"attention: dropout is from 0 to below 1, not {dropout}")
    if empty not in ("zero", "nan"):
        raise DataError(f"attention: empty is 'zero' or 'nan', not {empty!r}")
    return _checked_scale(scale, q.shape[3]), dropout


def check_operands(q, k, v) -> None:
    """Raise `DataError` for what are no q, k and v of one call."""
    require_operand("q", q)
    dtype, device = q.dtype, q.device
    if device.type == "meta":
        raise DataError("attention: q is on meta and has no values; make q, k and v on a device that has memory")
    for name, x in (("k", k), ("v", v)):
        require_operand(name, x)
        if x.dtype != dtype or x.device != device:
            raise DataError(f"attention: {name} is {x.dtype} on {x.device}, q is {dtype} on {device}")
    if k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3] or v.shape[:3] != k.shape[:3]:
        shapes = ", ".join(f"{name} {list(x.shape)}" for name, x in (("q", q), ("k", k), ("v", v)))
        raise DataError(f"attention: {shapes} do not fit: q [B, H, Sq, D], k [B, Hk, Sk, D], v [B, Hk, Sk, Dv]")
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise DataError(f"attention: q has {q.shape[1]} heads, k {k.shape[1]}, which does not divide them")


def require_operand(name: str, x) -> None:
    """Raise `DataError` for what is no q, k or v."""
    if isinstance(x, torch.Tensor) and x.ndim == 4 and x.dtype in _DTYPES and x.layout is torch.strided:
        return
    if not isinstance(x, torch.Tensor) or x.ndim != 4 or not x.is_floating_point():
        raise DataError(f"attention: {name} must be a floating point tensor [B, H, S, D]")
    if x.dtype not in _DTYPES:
        raise DataError(f"attention: {name} is {x.dtype}; cast it to float16, bfloat16, float32 or float64")
    raise DataError(f"attention: {name} is {x.layout}; it is dense, and the pattern says what is left out")


def check_functions(score, mask, target) -> None:
    """Raise `DataError` for what is no function, `ScheduleError` for what is no target."""
    if score is not None and not callable(score):
        raise DataError(f"score: a function score(s, b, h, i, j) is needed, not {_said(score)}; see bias for tensors")
    if mask is not None and not callable(mask):
        raise DataError(f"mask: a function mask(b, h, i, j) is needed, not {_said(mask)}; tensors are patterns")
    if type(target) is not str or target != "auto":
        check_target(target)


def checked_sink(sink, heads: int) -> torch.Tensor:
    if not isinstance(sink, torch.Tensor) or sink.shape != (heads,):
        raise DataError(f"sink: a tensor [H] = [{heads}] is needed")
    require_real("sink", sink)
    return sink


def require_real(name: str, tensor) -> None:
    """Raise `DataError` for a complex tensor."""
    if isinstance(tensor, torch.Tensor) and tensor.is_complex():
        raise DataError(f"{name}: {tensor.dtype} has no order, and scores are real; take its real part")


def _checked_scale(scale, width: int) -> float:
    if scale is None:
        return 1 / math.sqrt(max(width, 1))
    if type(scale) is float:
        return scale
    if not isinstance(scale, torch.Tensor):
        return _number("scale", scale)
    if takes_part(scale):
        raise DataError("attention: scale is a number and gets no gradient; multiply q by the tensor, with scale=1.0")
    try:
        return float(scale)
    except (RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"attention: scale is a number, not {_said(scale)}; multiply q by the tensor") from error


def _number(name: str, given) -> float:
    if not isinstance(given, _NUMBERS):
        raise DataError(f"attention: {name} is a number, not {_said(given)}")
    return float(given)


def _said(given) -> str:
    if isinstance(given, torch.Tensor):
        return f"a tensor {list(given.shape)}"
    return repr(given) if isinstance(given, (str, int, float, complex)) else type(given).__name__

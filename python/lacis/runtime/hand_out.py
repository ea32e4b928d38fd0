# SPDX-License-Identifier: Apache-2.0
"""Items handed out to workers by a kernel, so that the host waits for nothing: see `lacis.patterns.hand_out`."""

from __future__ import annotations

import functools

import torch

from ..emit.hand_out import HAND_OUT
from ..patterns import hand_out as rule
from . import library
from .compile import resolve_target
from .kernels import LoadedKernel, compile_kernel


@functools.cache
def _kernel(device: torch.device) -> LoadedKernel:
    target = resolve_target("cpu" if device.type == "cpu" else "cuda", device)
    return compile_kernel(HAND_OUT, target, device=device)


def hand_out(cost: torch.Tensor, workers: int, raster: int, groups: int) -> torch.Tensor:
    """As `lacis.patterns.hand_out.hand_out`, on the device of `cost`."""
    kernel = _kernel(cost.device)
    start = torch.zeros(workers, dtype=torch.float64, device=cost.device)
    with torch.no_grad():
        return library.einsum([cost, start], [], (groups, raster, cost.shape[1], raster), kernel.key)


def register() -> None:
    """Patterns on a GPU are handed out by the kernel from now on."""
    rule.on_device = hand_out

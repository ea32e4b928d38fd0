# SPDX-License-Identifier: Apache-2.0
"""What cannot happen while a CUDA graph is captured is refused before the device is asked for it."""

from __future__ import annotations

import contextlib
import threading

import torch

from ..errors import DataError


class _Own(threading.local):
    capture: object | None = None


_own = _Own()


@contextlib.contextmanager
def made_in_graphs():
    """What is made of patterns meanwhile, on this thread, is made by the graph that is captured, again in each run."""
    before, _own.capture = _own.capture, object()
    try:
        yield
    finally:
        _own.capture = before


def own_capture() -> object | None:
    """What stands for the graph of `made_in_graphs` that this thread captures, None where it captures none."""
    return _own.capture


def is_captured(device: torch.device) -> bool:
    """Does the present stream of this CUDA device capture a graph?"""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def refuse_capture(device: torch.device, what: str) -> None:
    """Raise `DataError` where the present stream of a CUDA device captures a graph; `what` needs the host."""
    if is_captured(device) and _own.capture is None:
        raise DataError(
            f"{what} cannot be made while a CUDA graph is captured, for the host waits for it; make the same call "
            "once before the capture"
        )

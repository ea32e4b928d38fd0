# SPDX-License-Identifier: Apache-2.0
"""Patterns of a rule, of which those of the last shapes are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch

from .capturing import is_captured

_MOST = 64  # shapes: a model has a few; a server that takes any length has those of long ago made again

Made = TypeVar("Made")


class RecentPatterns(Generic[Made]):
    """What was made for each shape; of more than 64 the one that was asked for last stays longest.

    What a CUDA graph captures stays for good: the graph reads it in every run. So does what is asked for on another
    stream than the one that it was made on: memory that is given back may be in use there still.
    """

    def __init__(self):
        self._made: dict[tuple, tuple[Made, torch.cuda.Stream | None]] = {}  # the last that was asked for is last
        self._held: set[tuple] = set()

    def found(self, shape: tuple, device: torch.device, make: Callable[[], Made]) -> Made:
        """What `make` makes for a shape, where it is not kept."""
        stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        made, made_on = self._made.pop(shape, None) or (_made_to_stay(make), stream)
        self._made[shape] = made, made_on
        if stream != made_on or is_captured(device):
            self._held.add(shape)
        if len(self._made) - len(self._held) > _MOST:
            self._made.pop(next((each for each in list(self._made) if each not in self._held), None), None)
        return made


def _made_to_stay(make: Callable[[], Made]) -> Made:
    """Of tensors that calls which record gradients can save, where a call in inference mode is the first."""
    with torch.inference_mode(False):
        return make()

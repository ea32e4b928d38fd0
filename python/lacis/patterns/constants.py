# SPDX-License-Identifier: Apache-2.0
"""Numbers that are the same for every pattern, on the device that reads them."""

from __future__ import annotations

import functools

import torch

from .capturing import is_captured


@functools.lru_cache(maxsize=256)  # of few words each: rounds of tiles, and ways to cut panels
@torch.inference_mode(False)  # who asks next may be in another mode
def on_device(numbers: tuple, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor of `numbers`, sent once: a CUDA graph that is captured later finds it there. Nobody writes into it.

    >>> on_device((1, 2), torch.int32, torch.device("cpu")).tolist()
    [1, 2]
    """
    return torch.tensor(numbers, dtype=dtype).to(device, non_blocking=True)


_counts: dict[torch.device, torch.Tensor] = {}
_FIRST, _LAST = 2**12, 2**20  # int64 numbers that are kept for a device: up to 8 MiB, and as many that were kept before


def counted(count: int, device: torch.device) -> torch.Tensor:
    """int64 [count]: 0, 1, ..., which are on the device already where they were asked for before. Nobody writes there.

    >>> counted(3, torch.device("cpu")).tolist()
    [0, 1, 2]
    """
    if torch.compiler.is_compiling():
        return torch.arange(count, device=device)
    held = _counts.get(device)
    if held is None or len(held) < count:
        size = max(_FIRST, 1 << (count - 1).bit_length()) if count else _FIRST
        if size > _LAST or is_captured(device):
            return torch.arange(count, device=device)
        with torch.inference_mode(False):
            held = torch.arange(size, device=device)
        if type(held) is not torch.Tensor:  # of a mode that only traces
            return held[:count]
        _shorter.append(held)
        _counts[device] = held
    return held[:count]


_shorter: list[torch.Tensor] = []  # captured graphs read what was the longest when they were made

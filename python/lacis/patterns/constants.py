# SPDX-License-Identifier: Apache-2.0
"""Numbers that are the same for every pattern, on the device that reads them."""

from __future__ import annotations

import functools

import torch


@functools.lru_cache(maxsize=256)  # of few words each: rounds of tiles, and ways to cut panels
@torch.inference_mode(False)  # who asks next may be in another mode
def on_device(numbers: tuple, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor of `numbers`, sent once: a CUDA graph that is captured later finds it there. Nobody writes into it.

    >>> on_device((1, 2), torch.int32, torch.device("cpu")).tolist()
    [1, 2]
    """
    return torch.tensor(numbers, dtype=dtype).to(device, non_blocking=True)

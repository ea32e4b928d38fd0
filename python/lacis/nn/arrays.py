# SPDX-License-Identifier: Apache-2.0
"""Integer arrays as buffers of a module: those of 16 bits are kept as pairs of bytes.

`torch.distributed` sends no int16, neither by gloo nor by NCCL, and DDP sends all buffers. Kernels take pairs of bytes
as they take int16.
"""

from __future__ import annotations

import torch


def as_buffer(array: torch.Tensor | None) -> torch.Tensor | None:
    """An array as a buffer: int16 [...] as uint8 [..., 2], over the same memory where it is contiguous.

    Others, and None, are answered as they are.

    >>> as_buffer(torch.tensor([1, 256], dtype=torch.int16)).tolist()
    [[1, 0], [0, 1]]
    """
    if array is None or array.dtype != torch.int16:
        return array
    return array.contiguous().unsqueeze(-1).view(torch.uint8)


def as_array(buffer: torch.Tensor | None) -> torch.Tensor | None:
    """What `as_buffer` was given: a view of the buffer, or itself.

    >>> as_array(torch.tensor([[1, 0], [0, 1]], dtype=torch.uint8))
    tensor([  1, 256], dtype=torch.int16)
    """
    if buffer is None or buffer.dtype != torch.uint8:
        return buffer
    return buffer.contiguous().view(torch.int16).squeeze(-1)

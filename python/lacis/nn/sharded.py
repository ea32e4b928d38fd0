# SPDX-License-Identifier: Apache-2.0
"""Values that several ranks share out by slots, as FSDP2 does; each rank holds all of the index arrays."""

from __future__ import annotations

import torch


def is_sharded(tensor) -> bool:
    """Is it a `DTensor`? Inside a forward pass FSDP2 puts the whole values in its place."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor of all ranks, which all of them must ask for; one that is not sharded as it is. Differentiable."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor


def shared_out(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """This rank's part of a tensor that every rank has, shared out as `like` is; itself where that is not sharded."""
    if not is_sharded(like):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)


def local(tensor: torch.Tensor) -> torch.Tensor:
    """What lies in the memory of this rank."""
    return tensor.to_local() if is_sharded(tensor) else tensor

# SPDX-License-Identifier: Apache-2.0
"""What a weight keeps and what grows: one decision for all ranks, that of the first."""

from __future__ import annotations

import torch

from .layer import Look, chosen


def decide(look: Look, sparsifier, group=None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`chosen`, and over the ranks of `group` what its first rank chose."""
    decision = chosen(look, sparsifier)
    if group is None or torch.distributed.get_world_size(group) < 2:
        return decision
    source = torch.distributed.get_global_rank(group, 0)
    return tuple(_sent(tensor, source, group) for tensor in decision)


def _sent(tensor: torch.Tensor, source: int, group) -> torch.Tensor:
    size = torch.tensor([len(tensor)], device=tensor.device)
    torch.distributed.broadcast(size, source, group=group)
    count = int(size)
    if count != len(tensor):
        tensor = tensor.new_empty(count, *tensor.shape[1:])
    tensor = tensor.contiguous()
    torch.distributed.broadcast(tensor, source, group=group)
    return tensor

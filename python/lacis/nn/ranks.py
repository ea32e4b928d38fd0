# SPDX-License-Identifier: Apache-2.0
"""Ranks that train one model hold one pattern: gradients are summed up by slot, whatever entry a slot is."""

from __future__ import annotations

import weakref

import torch
from torch.nn.parallel import DistributedDataParallel

from ..errors import DataError
from ..patterns.fingerprint import fingerprint
from .weight import PackedPart

_MOST = 3  # names in an error; the rest is a number
_compared: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()


def require_equal_patterns(model: torch.nn.Module, group=None) -> None:
    """Raise `DataError` on all ranks, with the names, unless they hold the same patterns in the same order.

    Every rank of `group` (a `torch.distributed` group, by default all ranks) must call it: it compares hashes of all
    patterns, a few bytes a layer. The first forward pass under `DistributedDataParallel` that records gradients does so
    by itself; call it after patterns changed. Without `torch.distributed` it does nothing.

    >>> require_equal_patterns(torch.nn.Linear(2, 2))
    """
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size(group) < 2:
        return
    mine = {name: _hash(part) for name, part in model.named_modules() if isinstance(part, PackedPart)}
    found: list = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(found, mine, group=group)
    names = dict.fromkeys(name for each in found for name in each)
    differ = [name for name in names if any(each.get(name) != found[0].get(name) for each in found)]
    if differ:
        listed = ", ".join(f"'{name}'" for name in differ[:_MOST])
        more = f" and {len(differ) - _MOST} more" if len(differ) > _MOST else ""
        raise DataError(
            f"the ranks hold different patterns of {listed}{more}, so sums over ranks would mix entries; build on the "
            "same dense weights with the same seeds, or load one state dict on every rank"
        )


def require_equal_under_ddp() -> None:
    """`require_equal_patterns` of the model whose forward pass runs in `DistributedDataParallel` now, once for each."""
    model = DistributedDataParallel._active_ddp_module
    if model not in _compared:
        _compared.add(model)
        require_equal_patterns(model.module, model.process_group)


def is_under_ddp(module: torch.nn.Module) -> bool:
    """Has the module run in a model that `DistributedDataParallel` wraps?"""
    return any(module is each for model in _compared for each in model.modules())


def _hash(part: PackedPart) -> tuple:
    """What differs where patterns do; the shape alone where there are no numbers yet."""
    arrays = part.own_arrays
    known = arrays and part._known.empty(part) is None
    return str(part.format), *part.packed_shape, len(part.values), *(fingerprint(arrays).tolist() if known else ())

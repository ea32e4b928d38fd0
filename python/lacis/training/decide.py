# SPDX-License-Identifier: Apache-2.0
"""What a weight keeps and what grows: checked, in order, and one decision for all ranks, that of the first."""

from __future__ import annotations

import torch

from ..errors import DataError, Error
from ..sparsifiers import Policy, View
from ..sparsifiers.entries_first import indices
from .decision import Decision, Next
from .layer import Look


def decide(look: Look, sparsifier, group=None) -> Decision | Next:
    """Which places stay and which come, ascending, and the values that come; in a group what its first rank says.

    Raises what the sparsifier does, with the weight's name.
    """
    try:
        is_alone = group is None or torch.distributed.get_world_size(group) < 2
        if is_alone and look.takes_next and (selected := _selected(look.view, sparsifier.at(look.view.step))):
            return selected
        keep, grow, initial = _chosen(look.view, sparsifier)
    except Error as error:
        raise type(error)(f"'{look.layer.name}': {type(sparsifier).__name__}: {error.message}") from error
    if not is_alone:
        source = torch.distributed.get_global_rank(group, 0)
        keep, grow, initial = (_sent(tensor, source, group) for tensor in (keep, grow, initial))
    return Decision(keep, grow, initial, len(keep) < look.view.count or len(grow) > 0)


def _selected(view: View, sparsifier) -> Next | None:
    """What the mask of a policy says, where lengths are known to the device alone; None where it has none."""
    if _on_host(view.positions) or not isinstance(sparsifier, Policy) or not sparsifier.knows("select"):
        return None
    if (selected := sparsifier.select(view)) is None:
        return None
    mask, count = selected
    positions = indices(mask, count)
    places = torch.arange(view.count, device=mask.device)
    stored = places.new_full((view.total,), -1).index_copy_(0, view.positions, places)[positions]
    source = torch.where(stored < 0, view.count + torch.arange(count, device=mask.device), stored)
    return Next(positions, source, sparsifier.initial(view, positions).to(view.values.dtype))


def _chosen(view: View, sparsifier) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    said = sparsifier.at(view.step).change(view)
    if not isinstance(said, (tuple, list)) or len(said) != 2:
        what = f"{len(said)} of them" if isinstance(said, (tuple, list)) else type(said).__name__
        raise DataError(
            f"change() must answer two int64 tensors, the places that are kept and those that come, not {what}"
        )
    keep, grow = said
    _check("keep", keep, view.count, view)
    _check("grow", grow, view.total, view)
    if _on_host(grow) and len(grow):
        kept = torch.zeros(view.total, dtype=torch.bool).index_fill_(0, view.positions.index_select(0, keep), True)
        if bool(kept.index_select(0, grow).any()):
            raise DataError("'grow' names a place that is kept")
    keep, grow = _ascending(keep), _ascending(grow)
    shape = len(grow), *view.values.shape[1:]
    initial = sparsifier.initial(view, grow) if isinstance(sparsifier, Policy) else view.values.new_zeros(shape)
    if not isinstance(initial, torch.Tensor) or initial.shape != shape or initial.device != grow.device:
        raise DataError(f"initial() must answer a tensor {list(shape)} on {grow.device}, one row for each place")
    return keep, grow, initial.to(view.values.dtype)


def _check(what: str, places, count: int, view: View) -> None:
    """Raise `DataError` unless these are distinct places below `count`; the numbers on a GPU are not waited for."""
    if not isinstance(places, torch.Tensor) or places.dtype != torch.int64 or places.ndim != 1:
        said = f"{places.dtype} {list(places.shape)}" if isinstance(places, torch.Tensor) else type(places).__name__
        raise DataError(f"change() must answer int64 tensors with one axis, '{what}' is {said}")
    if places.device != view.positions.device:
        raise DataError(f"'{what}' is on {places.device}, the weight on {view.positions.device}")
    if not _on_host(places) or not len(places):
        return
    if int(places.min()) < 0 or int(places.max()) >= count:
        raise DataError(f"'{what}' names a place that is not from 0 to {count - 1}")
    if bool((places[1:] > places[:-1]).all()):
        return
    named = torch.zeros(count, dtype=torch.bool).index_fill_(0, places, True)
    if int(named.sum()) < len(places):
        raise DataError(f"'{what}' names a place twice")


def _on_host(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu"


def _ascending(places: torch.Tensor) -> torch.Tensor:
    if _on_host(places) and not bool((places[1:] < places[:-1]).any()):
        return places
    return places.sort().values


def _sent(tensor: torch.Tensor, source: int, group) -> torch.Tensor:
    size = torch.tensor([len(tensor)], device=tensor.device)
    torch.distributed.broadcast(size, source, group=group)
    count = int(size)
    if count != len(tensor):
        tensor = tensor.new_empty(count, *tensor.shape[1:])
    tensor = tensor.contiguous()
    torch.distributed.broadcast(tensor, source, group=group)
    return tensor

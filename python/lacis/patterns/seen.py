# SPDX-License-Identifier: Apache-2.0
"""Whether a tensor may have changed since something was made from it."""

from __future__ import annotations

import weakref

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .capturing import is_captured

_trained_by_graphs: weakref.WeakValueDictionary[int, torch.Tensor] = weakref.WeakValueDictionary()  # by id

graphs = torch.empty(0, device="cpu")
"""Its version grows with each weight that a CUDA graph begins to train, for who has no Python."""


def changes(tensor: torch.Tensor) -> int:
    """How many changes of a tensor torch has counted; of one that was made in inference mode it counts none."""
    return 0 if tensor.is_inference() else tensor._version


class Seen:
    """A tensor when something was made from it: which it was, its storage, and how many changes torch had counted.

    The storage is told from others by itself, not by its address, which a later one may have again; its memory is not
    kept.

    >>> tensor = torch.zeros(3)
    >>> seen = Seen(tensor)
    >>> seen.still(tensor), seen.still(tensor.add_(1))
    (True, False)
    """

    __slots__ = ("_address", "_storage", "_tensor", "_version")

    def __init__(self, tensor: torch.Tensor):
        self._tensor = tensor
        self._storage = StorageWeakRef(tensor.untyped_storage())
        self._version, self._address = tensor._version, tensor.data_ptr()

    def renewed(self, tensor: torch.Tensor) -> Seen:
        """What `Seen(tensor)` would be, in less time where the tensor has its memory still."""
        same = tensor is self._tensor and tensor.data_ptr() == self._address
        if not same or tensor.untyped_storage()._cdata != self._storage.cdata:
            return Seen(tensor)
        self._version = tensor._version
        return self

    def still(self, tensor: torch.Tensor) -> bool:
        """Does the tensor hold what it held? Nobody can say it of one that a CUDA graph trains."""
        return (
            tensor is self._tensor
            and tensor._version == self._version
            and tensor.data_ptr() == self._address
            and tensor.untyped_storage()._cdata == self._storage.cdata
            and not is_trained_by_graph(tensor)
        )


def runs_again(values: torch.Tensor) -> bool:
    """Is this call captured in a CUDA graph, which may run again when these values are others?

    Then the graph must hold all that is made from them. Values that do not require gradients are taken to stay as they
    are. Where gradients are recorded, the graph is taken to train the values: torch counts none of its changes.
    """
    if not values.requires_grad or not is_captured(values.device):
        return False
    if torch.is_grad_enabled():
        trained_by_graph(values)
    return True


def trained_by_graph(values: torch.Tensor) -> None:
    """A CUDA graph that is captured changes these values, of which torch counts nothing from now on."""
    if not is_trained_by_graph(values):
        _trained_by_graphs[id(values)] = values
        torch.autograd.graph.increment_version(graphs)


def is_trained_by_graph(values: torch.Tensor) -> bool:
    """Was a CUDA graph captured that changes these values?"""
    return _trained_by_graphs.get(id(values)) is values

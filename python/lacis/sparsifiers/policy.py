# SPDX-License-Identifier: Apache-2.0
"""The promise of a policy: which places of a weight are kept and which come, each time that it is due."""

from __future__ import annotations

import copy
import inspect

import torch

from ..errors import DataError
from .base import Sparsifier


class Policy(Sparsifier):
    """Base of sparsifiers that choose again while a model trains, from what a `View` shows them. One of your own:

    >>> import lacis, torch
    >>> class DropSmallest(Policy):
    ...     def mask(self, tensor):  # the pattern at `build`
    ...         return lacis.Magnitude(0.5).mask(tensor)
    ...     def change(self, view):
    ...         keep = view.values.abs().argsort(descending=True)[: view.count - 1]
    ...         return keep, view.empty()[:0]  # nothing comes in its place
    >>> s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(4, 2)), target="eager")
    >>> handle = s["0.weight"].sparsify(DropSmallest(when=range(0, 10, 2))).set_format(lacis.Csr)
    >>> model = s.build()
    >>> updates = s.attach(torch.optim.SGD(model.parameters(), lr=0.1))
    >>> [updates.step() for _ in range(4)], handle.packed.nnz
    ([False, True, False, True], 2)

    `when` is a `range` of steps, `reads` may hold `"grad"` (the gradient of the values) and `"candidates"` (that of
    places which hold nothing: the backward pass before an update is due makes it). Places are the blocks of
    `.block(...)` or of a block format, else entries; `block` says other blocks, `()` entries. What is random follows
    from `view.seed`, so that nothing need be saved and all ranks choose alike.

    Raises `DataError` for another `when`.
    """

    reads: frozenset = frozenset()
    needs_state = False  # is `observe` to be called in each step?
    seed = 0
    block: tuple[int, ...] | None = None
    counts = True

    def __init__(self, when: range, reads=()):
        from .ramp import check_when

        self.when = check_when(type(self).__name__, when)
        self.reads = frozenset(reads)
        if unknown := self.reads - {"grad", "candidates"}:
            raise DataError(f"{type(self).__name__}: a policy reads 'grad' and 'candidates', not {min(unknown)!r}")

    def due(self):
        return self.when

    def with_block(self, sizes):
        """The policy with the blocks of `.block(...)`, unless it has its own."""
        if self.block is not None:
            return self
        bound = copy.copy(self)
        bound.block = tuple(int(size) for size in sizes)
        return bound

    def __repr__(self) -> str:
        known = inspect.signature(type(self).__init__).parameters
        given = {name: self.argument(name) for name in known if name != "self" and hasattr(self, name)}
        said = (f"{k}={v!r}" for k, v in given.items() if v != known[k].default)
        return f"{type(self).__name__}({', '.join(said)})"

    def change(self, view) -> tuple[torch.Tensor, torch.Tensor]:
        """int64 indices of the stored places that are kept, and int64 positions of those that come; both distinct.

        What is in neither goes. Lengths that follow from counts, not from values, spare a GPU waits.
        """
        raise NotImplementedError(f"'{type(self).__name__}' has no change(self, view)")

    def select(self, view) -> tuple[torch.Tensor, int] | None:
        """All that `change` says in one mask: bool [view.total] of the places afterwards, and how many they are.

        That number follows from counts alone, so no GPU is waited for where `keep` and `grow` have lengths that only
        the device knows. None where `change` is to be asked.
        """
        return None

    def repeats(self, step: int):
        """What the operations of an update depend on beside the `View`: updates with equal answers do the same ones.

        They are captured in a CUDA graph then, so they may read `view.seed` by `view.hashed` and `view.keys` alone,
        not `view.step`, and the device is not waited for. None where that is not so.
        """
        return None

    def knows(self, method: str) -> bool:
        """Does `method` speak for all that says what changes? Not where a subclass has another of them, but not it."""
        said = ("change", "select", "initial", method)
        return method in vars(next(each for each in type(self).__mro__ if any(name in vars(each) for name in said)))

    def initial(self, view, grow: torch.Tensor) -> torch.Tensor:
        """The values of the places that come, a row for each: 0."""
        return view.values.new_zeros(len(grow), *view.values.shape[1:])

    def state(self, view) -> dict[str, torch.Tensor]:
        """Arrays to keep for a weight, with a row for each place, as they begin; they follow the places."""
        return {}

    def observe(self, view) -> None:
        """Called in each step where `needs_state` is true, to write into the arrays of `view.state`."""

# SPDX-License-Identifier: Apache-2.0
"""Copies of a weight's values, and what they were made from: no call reads one that is older than its values.

Inference keeps a copy until the values change. A call that autograd records fills the same buffer anew, for itself and
its backward pass alone: what fills parameters without torch's count of changes (a graph of an optimizer, parameters
that are gathered for each step) does so between two such calls.
"""

from __future__ import annotations

import itertools

import torch

from ..errors import DataError
from ..patterns.capturing import is_captured
from ..patterns.copies import Refill
from ..patterns.tile_copy import TileCopy
from ..patterns.seen import Seen, runs_again

_fills = itertools.count(1)


def moment() -> int:
    """A number between those of the fillings before and after."""
    return next(_fills)


def require_memory(values: torch.Tensor) -> None:
    """Raise `DataError` where the storage of a weight's values was freed or made smaller, as sharded training does."""
    if values.untyped_storage().nbytes() < values.nbytes:
        raise DataError(
            f"the values {list(values.shape)} of the weight have no memory, their storage was freed or made smaller; "
            "gather or load them first"
        )


class CopiedValues:
    """How a buffer of tiles is made, `places` being the name of the buffer of its places, and what fills it now."""

    def __init__(self, places: str, how: TileCopy):
        self.places, self._how = places, how
        self.forget()

    def forget(self) -> None:
        """Nothing is filled: the values, or where they go, are others now."""
        self._tiles: torch.Tensor | None = None
        self._seen: Seen | None = None
        self._filled = 0
        self._lasts = False  # it serves later calls too, while the values stay as they are

    def is_made(self, places: str, how: TileCopy) -> bool:
        """Is this how the buffer is made?"""
        return (self.places, self._how) == (places, how)

    def made(self, values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """A copy of its own for one call."""
        return self._how(values.detach(), places)

    @torch.inference_mode(False)  # other modes fill it, too
    def with_room(self, tiles: torch.Tensor, values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """`tiles`, where these can be filled, else a copy that can."""
        return tiles if self._how.fits(tiles, values) else self.made(values, places)

    def fill(self, tiles: torch.Tensor, values: torch.Tensor, places: torch.Tensor, lasts: bool) -> torch.Tensor:
        """The copy of `values`: in `tiles`, where a recorded graph may read it, or anew where these cannot take it."""
        require_memory(values)
        if self._how.fits(tiles, values):
            self._how.again(tiles, values.detach(), places)
        else:
            tiles = self.with_room(tiles, values, places)
        self.note(tiles, values, lasts)
        return tiles

    def note(self, tiles: torch.Tensor, values: torch.Tensor, lasts: bool) -> None:
        """These tiles were filled with the values just now."""
        self._seen = Seen(values) if self._seen is None else self._seen.renewed(values)
        self._tiles, self._filled, self._lasts = tiles, moment(), lasts

    def refill(self, tiles: torch.Tensor, values: torch.Tensor, places: torch.Tensor) -> Refill:
        """What fills `tiles` at each call with such values."""
        return self._how.refill(tiles, values.detach(), places)

    def serves(self, tiles: torch.Tensor, values: torch.Tensor, since: int | None = None) -> bool:
        """Are `tiles` a copy of what the values are now, which lasts, or which was filled after the moment `since`?"""
        known = self._lasts if since is None else self._filled > since
        return known and tiles is self._tiles and self._seen.still(values)

    def __reduce__(self):
        return CopiedValues, (self.places, self._how)  # copies and files know of no filling


class BoundCopy:
    """A copy in the buffer that recorded calls are bound to, and the values that it is made from."""

    def __init__(self, copied: CopiedValues, tiles: torch.Tensor, places: torch.Tensor, values: torch.Tensor):
        self.copied, self._tiles, self._places, self._values = copied, tiles, places, values
        self._refill: Refill | None = None  # made by the first filling

    def refresh(self, since: int | None = None) -> None:
        """Fill it, unless that was done after `since`, or the values are frozen, and they have not changed."""
        copied, tiles, values = self.copied, self._tiles, self._values
        frozen = not values.requires_grad
        if (frozen or since is not None) and copied.serves(tiles, values, None if frozen else since):
            return
        if self._refill is not None and values.dtype == tiles.dtype:
            require_memory(values)
            self._refill(values.detach())
            return copied.note(tiles, values, lasts=frozen)
        if copied.fill(tiles, values, self._places, lasts=frozen) is not tiles:
            raise RuntimeError("a copy of values is no longer where it was bound")
        self._refill = copied.refill(tiles, values, self._places)

    def fill(self):
        """What fills it when called, bound to where the values lie now; None where nothing is bound to that."""
        values, refill = self._values, self._refill
        trains = refill is not None and values.requires_grad and values.dtype == self._tiles.dtype
        return refill.bound if trains and refill.holds(values) else None

    def filled(self) -> None:
        """What `fill` answered was called just now."""
        self._refill.noted()
        self.copied.note(self._tiles, self._values, lasts=False)

    def made(self, values: torch.Tensor) -> torch.Tensor:
        """A copy of other values of the same pattern."""
        return self.copied.made(values, self._places)


class DenseCopy:
    """The dense tensor of a weight, kept until the values or the pattern change."""

    def __init__(self):
        self.tensor: torch.Tensor | None = None
        self._made_from: list[tuple[int, Seen]] = []  # of each part the revision, and its values

    def of(self, weight) -> torch.Tensor:
        """The dense weight: recorded by autograd, or a copy that is kept."""
        parts = weight._parts()
        alone = [part.values.is_inference() or runs_again(part.values) for part in parts]
        if any(alone) or (torch.is_grad_enabled() and weight.requires_grad):
            self.forget()
            return weight.to_dense()
        if self.tensor is None or not self._holds(parts):
            dense = weight.to_dense().detach()
            if is_captured(dense.device):  # nothing ran yet
                return dense
            self.tensor, self._made_from = dense, [(part.revision, Seen(part.values)) for part in parts]
        return self.tensor

    def _holds(self, parts) -> bool:
        found = zip(parts, self._made_from)
        return all(part.revision == revision and seen.still(part.values) for part, (revision, seen) in found)

    def forget(self) -> None:
        self.tensor, self._made_from = None, []

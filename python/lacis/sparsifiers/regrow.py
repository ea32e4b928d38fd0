# SPDX-License-Identifier: Apache-2.0
"""Drops the smallest and lets others grow: SET, RigL, GraNet."""

from __future__ import annotations

import math

import torch

from ..errors import DataError
from .by_row import check_per, counted, keep_largest_of_groups, keep_largest_of_rows
from .choose import Keys, check_sparsity, hashed, keep_count, keep_largest, magnitude, magnitudes, spread
from .entries_first import indices
from .policy import Policy
from .ramp import Ramp

_ANNEAL = {
    None: lambda t: 1.0,
    "linear": lambda t: 1.0 - t,
    "cosine": lambda t: (1.0 + math.cos(math.pi * t)) / 2,
}


class Regrow(Policy):
    """Drop the smallest places and let as many others grow, each time that `when` says.

    Of the places that are kept a share goes, those of smallest magnitude (norm, of blocks). What grows instead is
    `"random"`, among what is empty (SET, Mocanu et al., 2018), or what has the largest `"gradient"` (RigL, Evci et
    al., 2020): a place that was just dropped may grow again then, and keeps its value, as in RigL's own code. With a
    `Ramp` more is dropped than grows (GraNet, Liu et al., 2021), and `when` is the ramp's by default. Places are the
    blocks of `.block(...)`, else entries.

    - `share`: of the places that are kept, how many are exchanged; with `anneal="cosine"` or `"linear"` it falls to 0
      at the end of `when`.
    - `initial`: what grown values begin with: a number, or `("uniform", bound)`, from -bound to bound.
    - `candidates`: which of the empty places may grow by their gradient: None all, as RigL; a share of them, chosen
      anew by the seed for each update.
    - `per="row"`: counts hold for each row of places apart, so that rows keep their lengths.
    - `seed` chooses the pattern at `build`, and what grows at random.

    >>> import torch
    >>> int(Regrow(0.75, range(0, 1000, 100), grow="gradient", anneal="cosine")(torch.ones(8, 8)).sum())
    16

    Raises `DataError` for shares that are not from 0 to 1, and for what is none of the words above.
    """

    def __init__(
        self,
        sparsity: float | Ramp,
        when: range | None = None,
        share: float = 0.3,
        grow: str = "random",
        anneal: str | None = None,
        initial=0.0,
        candidates: float | None = None,
        per: str = "tensor",
        seed: int = 0,
        block=None,
    ):
        self.sparsity, self.share = check_sparsity(sparsity), check_sparsity(share)
        if when is None and isinstance(sparsity, Ramp):
            when = sparsity.when
        if grow not in ("random", "gradient"):
            raise DataError(f"Regrow: grow is 'random' or 'gradient', not {grow!r}")
        if anneal not in _ANNEAL:
            raise DataError(f"Regrow: anneal is None, 'linear' or 'cosine', not {anneal!r}")
        self.grow, self.anneal, self.values = grow, anneal, _check_initial(initial)
        self.candidates = None if candidates is None else check_sparsity(candidates)
        self.per, self.seed = check_per(per), seed
        super().__init__(when, reads=("grad", "candidates") if grow == "gradient" else ())
        self.block = None if block is None else tuple(block)

    def argument(self, name):
        return self.values if name == "initial" else super().argument(name)

    def mask(self, tensor):
        block = self.block or (1,) * tensor.ndim
        grid = [-(-size // b) for size, b in zip(tensor.shape, block)]
        keys, rows = hashed(math.prod(grid), self.seed, tensor.device), grid[0] if self.per == "row" else 1
        scores = keys.at(slice(0, keys.numel)).reshape(rows, -1)
        kept = keep_largest_of_rows(scores, keep_count(scores.shape[1], self.sparsity))
        return spread(kept.reshape(grid), block, tensor.shape)

    def change(self, view):
        rows = view.grid[0] if self.per == "row" else 1
        wanted = keep_count(view.total // max(rows, 1), self.sparsity)
        exchanged = round(self._share_at(view.step) * wanted)
        if self.per == "row":
            return self._change_of_rows(view, rows, wanted, exchanged)
        count = min(view.count, wanted - exchanged)
        if self.grow == "random":  # into what is empty now
            count = max(count, wanted - (view.total - view.count))
        kept = keep_largest(_sizes(view), count)
        missing = wanted - count
        if self.grow == "random":
            missing = min(missing, view.total - view.count)
            return indices(kept, count), indices(_drawn(view, missing), missing)
        best, _ = _freely(view, kept, count, missing)
        kept = kept | best[view.positions]
        return kept.nonzero().reshape(-1), best.index_fill(0, view.positions, False).nonzero().reshape(-1)

    def select(self, view):
        if self.grow == "random" or self.per == "row":
            return None
        wanted = keep_count(view.total, self.sparsity)
        count = min(view.count, wanted - round(self._share_at(view.step) * wanted))
        kept = keep_largest(_sizes(view), count)
        best, grown = _freely(view, kept, count, wanted - count)
        return best.index_put((view.positions,), best[view.positions] | kept), count + grown

    def repeats(self, step):
        if self.per == "row":
            return None
        now = self.at(step)
        return now.sparsity, self._share_at(step), self.grow, self.candidates, self.values

    def _change_of_rows(self, view, rows, wanted, exchanged):
        quota = view.rows.new_full((rows,), wanted - exchanged)
        if self.grow == "random":
            quota = quota.clamp(min=wanted - view.total // max(rows, 1) + counted(view.rows, rows))
        kept = keep_largest_of_groups(_norms(view), view.rows, quota)
        keep = kept.nonzero().reshape(-1)
        lacking = wanted - counted(view.rows[keep], rows)
        positions = view.complement(view.positions[keep]) if self.grow == "gradient" else view.empty()
        if self.grow == "random":
            scores = view.hashed(positions)
        else:
            keys = _free_keys(view, indices(~kept, view.count - len(keep)))
            scores = keys.at(positions)
            positions, scores = positions[scores > 0], scores[scores > 0]  # 0 is no candidate
        best = keep_largest_of_groups(scores, positions // (view.total // rows), lacking)
        grown = torch.zeros(view.total, dtype=torch.bool, device=keep.device).index_fill(0, positions[best], True)
        keep = (kept | grown[view.positions]).nonzero().reshape(-1)
        return keep, grown.index_fill(0, view.positions, False).nonzero().reshape(-1)

    def _share_at(self, step: int) -> float:
        """How much is exchanged in a step, which falls to 0 at the end of `when`."""
        t = (step - self.when.start) / max(self.when.stop - self.when.start, 1)
        return self.share * _ANNEAL[self.anneal](min(max(t, 0.0), 1.0))

    def initial(self, view, grow):
        value = self.values
        if not isinstance(value, tuple):
            return view.values.new_full((len(grow), *view.values.shape[1:]), value)
        size = math.prod(view.values.shape[1:])
        at = grow[:, None] * size + torch.arange(size, device=grow.device)
        keys = view.keys(view.total * size, 1).at(at.reshape(-1))
        uniform = keys.double() / 2**63 * value[1]  # keys go from -2**63 to 2**63
        return uniform.to(view.values.dtype).reshape(len(grow), *view.values.shape[1:])


def _check_initial(initial):
    if isinstance(initial, (int, float)) and not isinstance(initial, bool):
        return initial
    if isinstance(initial, (tuple, list)) and len(initial) == 2 and initial[0] == "uniform":
        return "uniform", float(initial[1])
    raise DataError(f"Regrow: initial is a number or ('uniform', bound), not {initial!r}")


def _norms(view) -> torch.Tensor:
    sizes = magnitude(view.values)
    return sizes if view.block is None else torch.linalg.vector_norm(sizes.double(), dim=-1)


def _sizes(view):
    return magnitudes(view.values if view.block is None else _norms(view))


def _drawn(view, count: int) -> torch.Tensor:
    """Which of the empty places come, as many as `count` says, bool [view.total]."""
    stored = torch.zeros(view.total, dtype=torch.int8, device=view.positions.device)
    stored.index_fill_(0, view.positions, 1)
    if count == view.total - view.count:
        return stored == 0
    drawn, kept = view.keys(view.total), stored - 1  # no bits of stored places, all of empty ones
    keys = lambda at: drawn.at(at).bitwise_and_(kept[at])  # of empty places at most one is 0 then, too
    return keep_largest(Keys(view.total, drawn.bits, drawn.device, keys), count)


def _freely(view, kept: torch.Tensor, count: int, missing: int) -> tuple[torch.Tensor, int]:
    """Which places come, of those that are gone and of candidates, bool [view.total]; and how many."""
    gone = indices(~kept, view.count - count)
    grown = min(missing, len(gone) + view.candidates.count)
    return keep_largest(_free_keys(view, gone), grown), grown


def _free_keys(view, gone: torch.Tensor) -> Keys:
    """Of each place what its gradient counts: that of candidates and of stored places that are `gone`; 0 of others.

    What is not finite comes last of all, as 1.
    """
    candidates = view.candidates
    if candidates.are_all:
        found = _strength(candidates.everywhere).index_fill_(0, view.positions, 0)
    else:
        some = _strength(candidates.grad)
        found = some.new_zeros(view.total).index_copy_(0, candidates.positions, some)
    found[view.positions[gone]] = _strength(view.grad[gone])
    return Keys(view.total, torch.iinfo(found.dtype).bits - 1, found.device, lambda at: found[at])


def _strength(grad: torch.Tensor) -> torch.Tensor:
    """The bits of |grad|, or of the norm of a block's, in their order, from 2 on; 1 where it is not finite."""
    sizes = magnitude(grad)
    sizes = sizes if grad.ndim == 1 else torch.linalg.vector_norm(sizes.double(), dim=-1)
    type = torch.int64 if sizes.dtype == torch.float64 else torch.int32
    words = sizes.contiguous().view(type)  # of a tensor of our own
    is_odd = words >= int(torch.tensor(torch.inf, dtype=sizes.dtype).view(type))  # infinity, or NaN behind it
    return words.add_(2).masked_fill_(is_odd, 1)

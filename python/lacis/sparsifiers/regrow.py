# SPDX-License-Identifier: Apache-2.0
"""Drops the smallest and lets others grow: SET, RigL, GraNet."""

from __future__ import annotations

import math

import torch

from ..errors import DataError
from .by_row import check_per, keep_largest_of_groups, keep_largest_of_rows
from .choose import check_sparsity, hashed, keep_count, keep_largest, magnitude, magnitudes, spread
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

    Of the places that are kept a share goes, those of smallest magnitude (norm, of blocks). What grows in their place
    is `"random"`, among what is empty (SET, Mocanu et al., 2018), or what has the largest `"gradient"` (RigL, Evci et
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
        keep = indices(kept, count)
        positions, scores = self._free(view, kept, view.count - count)
        best = torch.sort(scores, descending=True, stable=True).indices[: wanted - count]
        return self._with_dropped(view, keep, positions[best])

    def _change_of_rows(self, view, rows, wanted, exchanged):
        quota = view.rows.new_full((rows,), wanted - exchanged)
        if self.grow == "random":
            quota = quota.clamp(min=wanted - view.total // max(rows, 1) + torch.bincount(view.rows, minlength=rows))
        kept = keep_largest_of_groups(_norms(view), view.rows, quota)
        keep = kept.nonzero().reshape(-1)
        positions, scores = self._free(view, kept, view.count - len(keep))
        lacking = wanted - torch.bincount(view.rows[keep], minlength=rows)
        best = keep_largest_of_groups(scores, positions // (view.total // rows), lacking)
        return self._with_dropped(view, keep, positions[best])

    def _share_at(self, step: int) -> float:
        """How much is exchanged in a step, which falls to 0 at the end of `when`."""
        t = (step - self.when.start) / max(self.when.stop - self.when.start, 1)
        return self.share * _ANNEAL[self.anneal](min(max(t, 0.0), 1.0))

    def _free(self, view, kept, dropped: int):
        """What may grow: the positions of places that are empty or dropped, and their scores."""
        if self.grow == "random":
            positions = view.empty()
            return positions, view.hashed(positions)
        gone = indices(~kept, dropped)
        positions = torch.cat([view.positions[gone], view.candidates.positions])
        scores = torch.cat([_strength(view.grad[gone]), _strength(view.candidates.grad)])
        order = torch.sort(positions).indices  # of equal scores the first place
        return positions[order], scores[order]

    def _with_dropped(self, view, keep: torch.Tensor, grown: torch.Tensor):
        """`keep` and what grows, where stored places among the latter, which were just dropped, stay as they are."""
        if self.grow == "random" or not view.count:
            return keep, grown
        at = torch.searchsorted(view.positions, grown).clamp_(max=view.count - 1)
        stored = view.positions[at] == grown
        return torch.cat([keep, at[stored]]).sort().values, grown[~stored]

    def initial(self, view, grow):
        value = self.values
        if not isinstance(value, tuple):
            return view.values.new_full((len(grow), *view.values.shape[1:]), value)
        size = math.prod(view.values.shape[1:])
        at = grow[:, None] * size + torch.arange(size, device=grow.device)
        keys = hashed(view.total * size, view.seed + 1, grow.device).at(at.reshape(-1))
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


def _strength(grad: torch.Tensor) -> torch.Tensor:
    """|grad|, or the norm of a block's; what is not finite comes last."""
    sizes = magnitude(grad).double()
    sizes = sizes if grad.ndim == 1 else torch.linalg.vector_norm(sizes, dim=-1)
    return torch.where(sizes.isfinite(), sizes, -1.0)

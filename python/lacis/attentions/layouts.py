# SPDX-License-Identifier: Apache-2.0
"""Which letters the heads of fused attention have, and how tensors are laid out for them."""

from __future__ import annotations

import torch

from ..patterns import Pattern
from .patterns import Chosen
from .walks import by_columns, by_rows


class Layout:
    """Heads that share a pattern are axes of a batch, with one for those of a group; others are those of the pattern.

    `letters` are those of scores before their rows, `key_letters` those of k and v, `query_letters` those of q where
    these are fewer.
    """

    query_letters = ""

    def __init__(self, chosen: Chosen, q: torch.Tensor, k: torch.Tensor):
        self.batch, self.heads, self.rows = q.shape[:3]
        self.columns, self.group = k.shape[2], q.shape[1] // k.shape[1]
        shared = chosen.pattern._shared
        self.sizes: tuple[int, ...] = ()
        self.base, self.letters = chosen.pattern, chosen.letters
        if shared is not None and len(shared[0].shape) == 2:
            self.base = shared[0]
            self.letters = "bgr" if self.group > 1 else "bh"
            self.sizes = (self.batch, self.heads // self.group, self.group)[: len(self.letters)]
        self.key_letters = self.letters.replace("r", "")

    @property
    def lead(self) -> tuple[int, ...]:
        return self.sizes or tuple(self.base.shape[:-2])

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.lead, self.rows, self.columns)

    @property
    def kind(self) -> tuple:
        """All that `places` follows from, and the sizes of coordinates."""
        return type(self), self.letters, self.shape, self.heads, self.group

    @property
    def merged(self) -> bool:
        """Is there one axis for batch and heads?"""
        return self.letters == "h"

    def pattern(self, columns: bool = False) -> Pattern | None:
        """By rows or by columns; None of sums of formats."""
        made = by_columns(self.base) if columns else by_rows(self.base)
        return made.batched(self.sizes, self.letters) if made is not None and self.sizes else made

    def places(self, where) -> tuple:
        """(b, h, i, j) of coordinates, of which there is one for each letter."""
        *lead, i, j = where
        if len(lead) == 3:
            return lead[0], lead[1] * self.group + lead[2], i, j
        b, h = lead if len(lead) == 2 else (lead[0] // self.heads, lead[0] % self.heads)
        return b, h, i, j

    def coordinates(self, b, h, i, j) -> dict:
        """By letter."""
        if self.letters == "bgr":
            return {"b": b, "g": h // self.group, "r": h % self.group, "i": i, "j": j}
        return {"b": b, "h": h, "i": i, "j": j} if not self.merged else {"h": b * self.heads + h, "i": i, "j": j}

    def query(self, tensor: torch.Tensor) -> torch.Tensor:
        """[B, H, …] with the axes of q's letters."""
        return tensor.reshape(*self.lead, *tensor.shape[2:])

    def key(self, tensor: torch.Tensor) -> torch.Tensor:
        """[B, Hk, …] with the axes of k's letters; copied for a group of heads that have patterns of their own."""
        if self.letters == "bgr":
            return tensor
        if self.group > 1:
            tensor = tensor.repeat_interleave(self.group, 1)
        return self.query(tensor)

    def operand(self, tensor: torch.Tensor, axes: list[int]) -> tuple[torch.Tensor, tuple[str, ...]]:
        """A tensor with axes of (b, h, i, j) by their numbers, and their letters in the order of the layout's."""
        lengths = self.batch, self.heads, self.rows, self.columns
        for dim, axis in enumerate(axes):
            if tensor.shape[dim] != lengths[axis]:
                tensor = tensor.narrow(dim, 0, lengths[axis])
        order = sorted(range(len(axes)), key=lambda dim: axes[dim])
        tensor, axes = tensor.permute(order), sorted(axes)
        if self.merged and axes and axes[0] < 2:
            if 1 not in axes:
                tensor, axes = tensor[:, None].expand(-1, self.heads, *tensor.shape[1:]), [0, 1, *axes[1:]]
            elif 0 not in axes:
                tensor, axes = tensor[None].expand(self.batch, *tensor.shape), [0, *axes]
            return tensor.flatten(0, 1), ("h", *("bhij"[axis] for axis in axes[2:]))
        letters: list[str] = []
        for axis in axes:
            if axis == 1 and self.letters == "bgr":
                tensor = tensor.unflatten(len(letters), (-1, self.group))
                letters += ["g", "r"]
            else:
                letters.append("bhij"[axis])
        return tensor, tuple(letters)

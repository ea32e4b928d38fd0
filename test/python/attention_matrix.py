# SPDX-License-Identifier: Apache-2.0
"""Attention drawn from all that it takes: sizes, dtypes, groups of heads, patterns, and what changes scores."""

from __future__ import annotations

import dataclasses
import math
import random

import tally
import torch

import lacis
from lacis.formats import compose

LENGTHS = (1, 7, 63, 64, 65, 130)
DEPTHS = (
    (16, 16),
    (32, 32),
    (64, 64),
    (128, 128),
    (80, 80),
    (96, 96),
    (64, 128),
    (192, 128),
    (24, 40),
    (256, 256),
    (576, 512),
)
HEADS = ((1, 1), (4, 4), (4, 2), (4, 1), (8, 2), (8, 1))
BLOCKS = ((16, 16), (32, 32), (64, 64), (128, 128), (64, 128), (1, 64), (64, 8))
# What tiles take, so that most calls are kernels on tensor cores.
HALF = torch.bfloat16, torch.float16
SIDES = ((8, 8), (16, 16), (32, 32), (16, 64), (64, 32), (64, 64), (128, 128), (64, 128))
NESTED = compose(2, [(4, 4)], [(lacis.Ell, [0, 1]), (lacis.Bitmap(2, 2), [2, 3])])
FORMATS = (lacis.Csr(), lacis.Coo(), lacis.Bsr(4, 8), lacis.BlockedEll(16, 16), lacis.Ell(), lacis.Hyb(1, 1))
FORMATS += (lacis.Bitmap(3, 3), NESTED)
SHARED = ("shared", "by head", "by head and batch", "rule", "any format")
CHANGES = ("none", "score", "mask", "causal", "window", "key_padding", "bias", "sink", "all")
# Of the norm: a rounding of the dtype in q, k and v, and in the result.
LIMITS = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 2**-8, torch.bfloat16: 2**-6}
NAMES = ("output", "lse", "q", "k", "v", "slope", "bias", "sink")


@dataclasses.dataclass(frozen=True)
class Case:
    """One call, which `found` makes with lacis and `expected` by dense attention in float64."""

    lengths: tuple[int, int]
    depths: tuple[int, int]
    heads: tuple[int, int]
    batch: int
    block: tuple[int, int]
    shared: str
    format: object
    change: str
    dtype: torch.dtype
    seed: int

    def inputs(self, device) -> list[torch.Tensor]:
        """q, k, v as transposed tensors; a slope [H], a bias [B, 1, 1, Sk] and a sink [H] in float32 at least."""
        generator = torch.Generator().manual_seed(self.seed)
        (s, t), (d, e), (h, g), b = self.lengths, self.depths, self.heads, self.batch
        shapes = [(b, s, h, d), (b, t, g, d), (b, t, g, e), (h,), (b, 1, 1, t), (h,)]
        wide = torch.promote_types(self.dtype, torch.float32)  # sums over all entries are in the dtype of what is read
        dtypes = [self.dtype] * 3 + [wide] * 3
        drawn = [torch.randn(s, generator=generator).to(dtype).to(device) for s, dtype in zip(shapes, dtypes)]
        return [x.transpose(1, 2) if n < 3 else x for n, x in enumerate(drawn)]

    def kept(self) -> torch.Tensor:
        """The entries of [Sq, Sk], with axes of heads and batches before: half of the blocks, none of a row of them."""
        (s, t), (rows, columns) = self.lengths, self.block
        if self.shared == "rule":
            i, j = torch.arange(s)[:, None], torch.arange(t)
            return (i - j).abs() <= 40
        lead = {"by head": (self.heads[0],), "by head and batch": (self.batch, self.heads[0])}.get(self.shared, ())
        grid = (-(-s // rows), -(-t // columns))
        layout = torch.rand(*lead, *grid, generator=torch.Generator().manual_seed(self.seed)) < 0.5
        if grid[0] > 1:
            layout[..., 1, :] = False
        return layout.repeat_interleave(rows, -2).repeat_interleave(columns, -1)[..., :s, :t]

    def pattern(self, device):
        if self.shared == "rule":
            return lacis.Local(40, block=max(16, *self.block))
        kept = self.kept().to(device)
        format = self.format if self.shared == "any format" else lacis.Bsr(*self.block)
        return lacis.Pattern.from_mask(kept, format.under("bh"[4 - kept.ndim :]) if kept.ndim > 2 else format)

    def options(self, slope, bias, sink) -> dict:
        """The words of `lacis.attention` that change scores."""
        keys = torch.arange(bias.shape[-1], device=bias.device)
        words = {
            "score": lambda s, b, h, i, j: s * 0.5 + slope[h] * ((j - i) * 0.125).cos(),
            "mask": lambda b, h, i, j: (i + j + h) % 3 != 0,
            "causal": True,
            "window": (20, 33),
            "key_padding": (keys < max(1, len(keys) - 5)).expand(self.batch, -1),
            "bias": bias,
            "sink": sink,
        }
        return words if self.change == "all" else {word: words[word] for word in (self.change,) if word in words}

    def found(self, leaves, device, target: str):
        slope, bias, sink = leaves[3:]
        options = self.options(slope, bias, sink)
        return lacis.attention(*leaves[:3], self.pattern(device), return_lse=True, target=target, **options)

    def expected(self, leaves, device):
        """Softmax over scores that are -infinity where nothing is kept; rows without an entry are 0."""
        q, k, v, *numbers = leaves
        options = self.options(*numbers)
        k, v = (x.repeat_interleave(self.heads[0] // self.heads[1], 1) for x in (k, v))
        sides = [(-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, -1, 1), (1, 1, 1, -1)]
        b, h, i, j = (torch.arange(n, device=device).reshape(s) for n, s in zip((*q.shape[:3], k.shape[2]), sides))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.depths[0])
        scores = options["score"](scores, b, h, i, j) if "score" in options else scores
        scores = scores + options.get("bias", 0)
        kept = self.kept().to(device).expand(scores.shape)
        if "mask" in options:
            kept = kept & options["mask"](b, h, i, j)
        if "causal" in options:
            kept = kept & (j <= i)
        if "window" in options:
            kept = kept & (i - j <= options["window"][0]) & (j - i <= options["window"][1])
        if "key_padding" in options:
            kept = kept & options["key_padding"][:, None, None]
        scores = torch.where(kept, scores, -math.inf)
        if "sink" in options:
            scores = torch.cat([scores, options["sink"][None, :, None, None].expand(*scores.shape[:3], 1)], -1)
        lse = scores.logsumexp(-1)
        empty = lse.isneginf()[..., None]
        shares = torch.where(empty, 0, torch.where(empty, 0, scores).softmax(-1))[..., : k.shape[2]]
        return shares @ v, lse


def cases(count: int, dtypes, seed: int = 0, lengths=LENGTHS, depths=DEPTHS, blocks=BLOCKS) -> list[Case]:
    """So many cases, the same for a seed of the suite."""
    draw = random.Random(1000 * tally.SEED + seed)
    return [
        Case(
            lengths=(draw.choice(lengths), draw.choice(lengths)),
            depths=draw.choice(depths),
            heads=draw.choice(HEADS),
            batch=draw.choice((1, 2)),
            block=draw.choice(blocks),
            shared=draw.choice(SHARED),
            format=draw.choice(FORMATS),
            change=draw.choice(CHANGES),
            dtype=draw.choice(dtypes),
            seed=n,
        )
        for n in range(count)
    ]


def check(case: Case, device: str = "cpu", target: str = "auto") -> None:
    """Output, log of the sums and all gradients, against float64."""
    inputs, found = case.inputs(device), []
    for exact in (False, True):
        leaves = [(x.double() if exact else x).detach().requires_grad_() for x in inputs]
        output, lse = case.expected(leaves, device) if exact else case.found(leaves, device, target)
        drawn = [torch.randn(x.shape, generator=torch.Generator().manual_seed(9)) for x in (output, lse)]
        arrive = [x.to(case.dtype).to(y) for x, y in zip(drawn, (output, lse))]
        total = (output * arrive[0]).sum() + torch.where(lse.isinf(), 0, lse * arrive[1]).sum()
        gradients = torch.autograd.grad(total, leaves, allow_unused=True)
        found.append([output, lse, *(torch.zeros_like(x) if g is None else g for x, g in zip(leaves, gradients))])
    for name, mine, right in zip(NAMES, *found):
        mine, right = mine.detach().double(), right.detach()
        assert torch.equal(mine.isinf(), right.isinf()), f"{name}: {case}"
        error = torch.where(right.isinf(), 0, mine - right).norm()
        floor = 1e-2 if name in NAMES[:5] else 1e-1  # of what is summed over all rows, most cancels out
        scale = torch.where(right.isinf(), 0, right).norm() + right.numel() ** 0.5 * floor
        assert error <= LIMITS[case.dtype] * scale, f"{name} is off by {error / scale:.2e} of its norm: {case}"

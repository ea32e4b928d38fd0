# SPDX-License-Identifier: Apache-2.0
"""The oracle of patterns that change: dense weights under masks, and each method written out on them."""

from __future__ import annotations

import hashlib
import math

import lacis
import torch
import torch.nn.functional as F

from lacis.sparsifiers.choose import hashed

SHAPE = (40, 24, 8)  # input, hidden, output
NAMES = ("0.weight", "2.weight")
FORMATS = {
    "csr": (None, lambda h: h.set_format(lacis.Csr)),
    "csc": (None, lambda h: h.set_format(lacis.Csc)),
    "coo": (None, lambda h: h.set_format(lacis.Coo)),
    "ell": (None, lambda h: h.set_format(lacis.Ell)),
    "sum": (None, lambda h: h.decompose(ell=lacis.Ell(width=4), rest=lacis.Coo)),
    "bsr": ((4, 4), lambda h: h.block(4, 4).set_format(lacis.Bsr)),
    "bcsc": ((4, 8), lambda h: h.block(4, 8).set_format(lacis.Bcsc)),
    "uneven": ((7, 3), lambda h: h.block(7, 3).set_format(lacis.BlockedEll)),
    "nest": ((8, 4), lambda h: h.block(8, 4).set_format(lacis.Csr, axis=[0, 1]).set_format(lacis.Coo, axis=[2, 3])),
}


def make():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(*SHAPE[:2]), torch.nn.Tanh(), torch.nn.Linear(*SHAPE[1:])]
    return torch.nn.Sequential(*layers).double()


class Lion(torch.optim.Optimizer):
    """One that no library has: a momentum, and a count that is a tensor."""

    def __init__(self, params, lr=0.1, betas=(0.9, 0.99)):
        super().__init__(params, {"lr": lr, "betas": betas})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            (a, b), lr = group["betas"], group["lr"]
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                if not state:
                    state.update(momentum=torch.zeros_like(p), steps=torch.zeros(()))
                state["steps"] += 1
                p -= lr * (a * state["momentum"] + (1 - a) * p.grad)
                state["momentum"].mul_(b).add_(p.grad, alpha=1 - b)


OPTIMIZERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=3e-3, amsgrad=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01),
    "lion": lambda parameters: Lion(parameters),
}


def blocks(tensor, block):
    """[blocks, elements] of a matrix; each element alone where there is no block."""
    if block is None:
        return tensor.reshape(-1, 1)
    (r, c), (rows, columns) = block, tensor.shape
    padded = F.pad(tensor, (0, -columns % c, 0, -rows % r))
    return torch.cat([b.reshape(1, -1) for strip in padded.split(r, 0) for b in strip.split(c, 1)])


def spread(chosen, block, shape):
    if block is None:
        return chosen.reshape(shape)
    grid = chosen.reshape(math.ceil(shape[0] / block[0]), -1)
    return grid.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[: shape[0], : shape[1]]


def top(scores, count, among):
    """bool: the `count` largest of those `among`; of equal ones the first."""
    ranked = torch.where(among, scores.double(), -torch.inf)
    chosen = torch.zeros_like(among)
    chosen[torch.argsort(ranked, descending=True, stable=True)[:count]] = True
    return chosen & among


class Twin:
    """The dense model, its masks, and an optimizer whose state is masked as the weights are."""

    def __init__(self, model, packed, optimizer, block, method, seed=0):
        self.model, self.block, self.method, self.seed = model, block, method, seed
        self.optimizer, self.step_count = optimizer(model.parameters()), 0
        self.weights = {name: model.get_parameter(name) for name in NAMES}
        self.masks = {name: packed[name].to_mask().clone() for name in NAMES}
        self.scores = {name: torch.zeros(len(blocks(self.masks[name], block))).double() for name in NAMES}
        self.dense_gradient = {}
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight *= self.masks[name]

    def train(self, losses):
        """A step of the optimizer on the sum of the losses, which are backpropagated one by one."""
        self.optimizer.zero_grad()
        found = [loss(self.model) for loss in losses]
        for loss in found:
            loss.backward()
        for name, weight in self.weights.items():
            self.dense_gradient[name] = weight.grad.clone()
            weight.grad *= self.masks[name]
        self.optimizer.step()
        for weight, mask in zip(self.weights.values(), self.masks.values()):
            self._mask(weight, mask)
        return found

    @torch.no_grad()
    def _mask(self, weight, mask):
        weight *= mask
        for value in self.optimizer.state[weight].values():
            if isinstance(value, torch.Tensor) and value.shape == weight.shape:
                value *= mask

    @torch.no_grad()
    def update(self, due):
        """What `Updates.step` does, by its own words."""
        self.step_count += 1
        for name, weight in self.weights.items():
            mask = blocks(self.masks[name], self.block).any(1)
            moved = -(weight * self.dense_gradient[name]) * self.masks[name]
            self.scores[name] += blocks(moved, self.block).sum(1)
            if self.step_count in due:
                chosen = self.method(self, name, weight, mask)
                self.scores[name] *= mask & chosen
                then = spread(chosen, self.block, weight.shape)
                self._mask(weight, then & self.masks[name])
                self.masks[name] = then

    def size(self, tensor):
        return torch.linalg.vector_norm(blocks(tensor, self.block), dim=1)


def wanted(twin, mask, sparsity):
    return len(mask) - round(sparsity(twin.step_count) * len(mask))


def gmp(sparsity):
    return lambda twin, name, weight, mask: top(twin.size(weight), wanted(twin, mask, sparsity), mask)


def movement(sparsity):
    return lambda twin, name, weight, mask: top(twin.scores[name], wanted(twin, mask, sparsity), mask)


def regrow(sparsity, share, by):
    def method(twin, name, weight, mask):
        count = wanted(twin, mask, sparsity)
        kept = top(twin.size(weight), min(int(mask.sum()), count - round(share(twin.step_count) * count)), mask)
        if by == "gradient":
            return kept | top(twin.size(twin.dense_gradient[name]), count - int(kept.sum()), ~kept)
        text = f"{twin.seed}:{name}:{twin.step_count}"
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        keys = hashed(len(mask), seed, "cpu").at(slice(0, len(mask))) ^ torch.iinfo(torch.int64).min  # without a sign
        best = torch.argsort(torch.where(mask, torch.iinfo(torch.int64).min, keys), descending=True, stable=True)
        return kept.index_fill(0, best[: count - int(kept.sum())], True)

    return method

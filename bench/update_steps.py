# SPDX-License-Identifier: Apache-2.0
"""Patterns that change while a model trains on a GPU: what an update costs, what steps cost with it, and in memory."""

from __future__ import annotations

import statistics
import time

import lacis
import torch

from .measure import Case

TITLE = "Patterns of blocks that change while a model trains, 90 % zeros, bf16, AdamW (fused)"
EVERY = 100  # steps from one update to the next, as in RigL's paper
ROUNDS = 5
NEVER = range(10**9, 10**9 + 1)


def run() -> list[Case]:
    if not torch.cuda.is_available():
        return []
    mean, plain, words = bert()
    return [
        Case("resparsify 4096², blocks of 64, arrays of three products", {"lacis": resparsified()}, "≤ 10 ms"),
        Case(f"mean step of {words}, RigL every {EVERY}", {"lacis": mean, "without updates": plain}, "≥ 0.926"),
        against_masks(),
        memory(),
    ]


def rigl(when: range, seed: int = 0) -> lacis.Regrow:
    return lacis.Regrow(0.9, when, grow="gradient", seed=seed)


def built(model, block: int, policy):
    """The model with its matrices sparse, and the schedule."""
    s = lacis.create_schedule(model)
    s.match(r".*weight").block(block, block).sparsify(policy).set_format(lacis.Bsr)
    return s.build(), s


def train(model, optimizer, x, after=lambda: None):
    """A step: forward, backward, optimizer, and what comes `after`."""
    model(x).square().mean().backward()
    optimizer.step()
    after()
    optimizer.zero_grad()


def taken(function, times: int = 1) -> float:
    """Milliseconds of a call, until the device is done."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / times * 1e3


def resparsified(size: int = 4096, tokens: int = 2048, device: str = "cuda") -> float:
    """Other blocks, of which as many grow at random as were dropped."""
    layer = torch.nn.Linear(size, size, bias=False, device=device, dtype=torch.bfloat16)
    model, s = built(torch.nn.Sequential(layer), 64, lacis.BlockRandom(0.9))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    s.attach(optimizer)
    x = torch.randn(tokens, size, device=device, dtype=torch.bfloat16, requires_grad=True)
    found = []
    for n in range(ROUNDS + 2):
        train(model, optimizer, x)  # binds what all three products walk
        policy = lacis.Regrow(0.9, NEVER, share=0.5, seed=n)
        found.append(taken(lambda: s["0.weight"].resparsify(policy)))
    return statistics.median(found[2:])


def bert(layers: int = 12, width: int = 768, tokens: int = 4096) -> tuple[float, float, str]:
    """The mean step of as many matrices as BERT-base has, with updates and without, in turns."""
    sizes = [*[(width, width)] * 4, (width, 4 * width), (4 * width, width)] * layers
    steps = []
    for when in (range(EVERY, 10**9, EVERY), NEVER):
        linears = [torch.nn.Linear(*size, device="cuda", dtype=torch.bfloat16) for size in sizes]
        model, s = built(torch.nn.Sequential(*linears), 32, rigl(when))
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        updates, x = s.attach(optimizer), torch.randn(tokens, width, device="cuda", dtype=torch.bfloat16)
        steps.append(lambda m=model, o=optimizer, x=x, u=updates: train(m, o, x, u.step))
    for step in steps:
        taken(step, EVERY)  # through the first update
    found = [[taken(step, EVERY) for step in steps] for _ in range(ROUNDS)]
    mean, plain = (statistics.median(each) for each in zip(*found))
    return mean, plain, f"{len(sizes)} layers of BERT-base, blocks of 32, {tokens} tokens"


def against_masks(size: int = 4096, tokens: int = 8192) -> Case:
    """Beside RigL as it is run on dense weights: under masks, which gradients, weights and states are multiplied by."""
    x = torch.randn(tokens, size, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    make = lambda: torch.nn.Sequential(torch.nn.Linear(size, size, bias=False, device="cuda", dtype=torch.bfloat16))
    model, s = built(make(), 64, rigl(range(EVERY, 10**9, EVERY)))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    updates, masked = s.attach(optimizer), Masked(make(), size)
    steps = {
        "lacis": lambda: train(model, optimizer, x, updates.step),
        "masked dense": lambda: masked.train(x),
    }
    for step in steps.values():
        taken(step, EVERY)
    found = {name: statistics.median(taken(step, EVERY) for _ in range(ROUNDS)) for name, step in steps.items()}
    return Case(f"mean step of one layer {size}², blocks of 64, RigL every {EVERY}", found, "≥ 2.0")


class Masked:
    """RigL on a dense weight: at entries, as its codes have it, but the choice is one `topk` of each kind."""

    def __init__(self, model, size: int):
        self.model, self.weight, self.count = model, model[0].weight, 0
        self.optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        self.kept = size * size // 10
        self.mask = torch.zeros_like(self.weight)
        self.mask.view(-1)[torch.randperm(size * size, device="cuda")[: self.kept]] = 1
        with torch.no_grad():
            self.weight *= self.mask

    def train(self, x) -> None:
        self.model(x).square().mean().backward()
        self.count += 1
        with torch.no_grad():
            if self.count % EVERY == 0:
                self._choose()
            self.weight.grad *= self.mask
            self.optimizer.step()
            self.weight *= self.mask
            for state in self.optimizer.state[self.weight].values():
                if state.shape == self.weight.shape:
                    state *= self.mask
        self.optimizer.zero_grad()

    def _choose(self) -> None:
        stay = round(0.7 * self.kept)
        flat, grad = self.weight.reshape(-1), self.weight.grad.reshape(-1)
        kept = torch.where(self.mask.reshape(-1) > 0, flat.abs().float(), -1).topk(stay).indices
        grown = grad.abs().float().index_fill(0, kept, -1).topk(self.kept - stay).indices
        self.mask.zero_().view(-1)[torch.cat([kept, grown])] = 1


def memory(size: int = 4096, device: str = "cuda") -> Case:
    """MiB of values, of their state, and of all arrays, beside a dense weight with its state."""
    found = {}
    for name, is_sparse in (("lacis", True), ("torch dense", False)):
        model = torch.nn.Sequential(torch.nn.Linear(size, size, bias=False, device=device, dtype=torch.bfloat16))
        if is_sparse:
            model, _ = built(model, 64, rigl(NEVER))
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.randn(256, size, device=device, dtype=torch.bfloat16, requires_grad=True)
        train(model, optimizer, x)
        held = [*model.parameters(), *model.buffers()]
        held += [t for state in optimizer.state.values() for t in state.values() if isinstance(t, torch.Tensor)]
        found[name] = sum(tensor.numel() * tensor.element_size() for tensor in held) / 2**20
    return Case("values, state and arrays of one layer 4096², blocks of 64, in MiB", found, "≥ 5 (0.2 × dense)")

# SPDX-License-Identifier: Apache-2.0
"""A language to learn without a download: the next word depends on the one before, and few words may follow."""

from __future__ import annotations

import torch


class Chain:
    """Sentences of a Markov chain over `words`, of which each has `follow` successors; `seed` names the language."""

    def __init__(self, words: int = 64, follow: int = 3, seed: int = 0):
        self.generator = torch.Generator().manual_seed(seed)
        self.next = torch.stack([torch.randperm(words, generator=self.generator)[:follow] for _ in range(words)])

    def batch(self, count: int = 16, length: int = 32) -> torch.Tensor:
        """int64 [count, length]: sentences that were not there before."""
        draw = lambda below: torch.randint(below, (count,), generator=self.generator)
        found = [draw(len(self.next))]
        for _ in range(length - 1):
            found.append(self.next[found[-1], draw(self.next.shape[1])])
        return torch.stack(found, 1)

    @property
    def best(self) -> float:
        """The perplexity of who knows the language: the number of successors."""
        return float(self.next.shape[1])


def train(model, chain: Chain, steps: int, rate: float = 3e-3, after_step=lambda optimizer: None) -> None:
    """Train what requires gradients on new sentences."""
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate)
    for _ in range(steps):
        ids = chain.batch()
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        after_step(optimizer)


@torch.no_grad()
def perplexity(model, chain: Chain) -> float:
    """Of the next word, on sentences that were not trained on."""
    model.eval()
    ids = chain.batch(64)
    return float(model(input_ids=ids, labels=ids).loss.exp())

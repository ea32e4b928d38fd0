# SPDX-License-Identifier: Apache-2.0
"""Trains a network at 95 % zeros from scratch: with a fixed pattern, one that grows at random (SET), and by RigL.

    python examples/grow_patterns.py [--device cpu|cuda] [--steps 600] [--out folder]

256 inputs, of which 16 say what the output is: a fixed random pattern wires most entries to nothing, RigL finds out.
"""

from __future__ import annotations

import argparse
import pathlib

import lacis
import torch

INPUTS, TOLD, HIDDEN = 256, 16, 32


def policies(steps):
    when = range(0, steps * 3 // 4, 20)  # the last quarter trains what was found
    return {
        "fixed": lacis.Random(0.95),
        "SET": lacis.Regrow(0.95, when, share=0.3, anneal="cosine"),
        "RigL": lacis.Regrow(0.95, when, share=0.3, anneal="cosine", grow="gradient"),
    }


def task(device):
    """A teacher that looks at the first inputs alone."""
    torch.manual_seed(0)
    teacher = torch.nn.Sequential(torch.nn.Linear(TOLD, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4)).to(device)

    def batch(size):
        x = torch.randn(size, INPUTS, device=device)
        with torch.no_grad():
            return x, 3 * teacher(x[:, :TOLD])

    return batch


def build(policy, device):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 4))
    s = lacis.create_schedule(model.to(device))
    s["0.weight"].sparsify(policy).set_format(lacis.Csr)
    s.build()
    with torch.no_grad():  # each row has 13 entries instead of 256
        model[0].weight.values.mul_((1 / 0.05) ** 0.5)
    return model, s


def train(policy, batch, steps, device):
    """The loss at the end, and the entries of each input over time."""
    model, s = build(policy, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    updates, patterns = s.attach(optimizer), []
    for step in range(steps):
        x, y = batch(256)
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        updates.step()
        if step % 20 == 0:
            patterns.append(s["0.weight"].packed.pattern.to_mask().sum(0).cpu())
    x, y = batch(4096)
    with torch.no_grad():
        return float((model(x) - y).square().mean() / y.var()), torch.stack(patterns)


def plot(patterns, path):
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(patterns), figsize=(12, 4), sharey=True)
    for each, (name, counts) in zip(axes, patterns.items()):
        each.imshow(counts.T[:64], aspect="auto", vmin=0, vmax=60)
        each.set(title=name, xlabel="20 steps")
    axes[0].set(ylabel=f"input (the first {TOLD} say something)")
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    batch, patterns = task(options.device), {}
    for name, policy in policies(options.steps).items():
        loss, patterns[name] = train(policy, batch, options.steps, options.device)
        last = patterns[name][-1]
        share = float(last[:TOLD].sum() / last.sum())
        print(f"{name:>5}: unexplained {loss:.3f} of the variance, {share:.0%} of the entries at inputs that count")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        plot(patterns, options.out / "patterns.png")


if __name__ == "__main__":
    main()

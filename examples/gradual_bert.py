# SPDX-License-Identifier: Apache-2.0
"""Prunes MiniLM step by step while it is distilled (a Ramp), beside the pattern of train_bert.py, chosen at once.

    python examples/gradual_bert.py [--device cpu|cuda] [--steps 1500] [--once]

Both end with 80 % zeros in the feed-forward weights, in 16x1 blocks, after as many steps on the same sentences. The
gradual one has a mean cosine to the dense embeddings of 0.934 then, on sentences kept apart; it takes two CPU cores a
quarter of an hour.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import lacis
import torch
from train_bert import batches, distill, load_with_tokenizer, similarity, student_of

END = 0.8


def prune(model, steps):
    """More and more zeros over the first three tenths of the steps; the rest trains what is left."""
    last, every = max(steps * 3 // 10, 1), max(steps // 120, 1)
    s = lacis.create_schedule(model)
    weights = s.match(r"encoder\.layer\.\d\.(intermediate|output)\.dense\.weight")
    ramp = lacis.Ramp(0.0, END, range(0, last + 1, every)) if steps else END
    weights.block(16, 1).sparsify(lacis.BlockMagnitude(ramp)).set_format(lacis.Bsr)
    s.build()
    return s


def run(name, teacher, train, test, options, gradual):
    """Distil a student; prints what it is worth on sentences that it was not trained on."""
    model = student_of(teacher)
    s = prune(model, options.steps if gradual else 0)
    distill(model, teacher, train, options.steps, options.rate, s.attach)
    zeros = 1 - s["encoder.layer.0.intermediate.dense.weight"].packed.nnz / (384 * 1536)
    print(f"{name}: {zeros:.0%} zeros, mean cosine on sentences kept apart {similarity(model, teacher, test):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--sentences", type=int, default=20000)
    parser.add_argument("--once", action="store_true", help="also the pattern that is chosen at once")
    options = parser.parse_args()
    torch.manual_seed(0)
    teacher, _, _, tokenizer = load_with_tokenizer(options.device)
    train, test = batches(tokenizer, options)
    if options.once:
        run("at once", teacher, train, test, options, gradual=False)
    run("gradual", teacher, train, test, options, gradual=True)


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    main()

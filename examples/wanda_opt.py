# SPDX-License-Identifier: Apache-2.0
"""Prunes an OPT in one shot, without training: by magnitude, and by Wanda and SparseGPT, which see what layers get.

    python examples/wanda_opt.py [--steps 400] [--zeros 0.85] [--target auto|eager]

The model is made by its configuration, and learns a small language first; `from_pretrained` puts a trained one there.
"""

from __future__ import annotations

import argparse
import copy

import lacis
import torch
import transformers
from chain import Chain, perplexity, train


def make():
    config = transformers.OPTConfig(
        vocab_size=64, hidden_size=64, word_embed_proj_dim=64, ffn_dim=256, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, dropout=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.OPTForCausalLM(config)


def prune(model, sparsifier, batches, target):
    """The linear layers of all blocks; block by block, as Wanda's own code does."""
    s = lacis.create_schedule(model, target=target)
    layers = s.match(r"model\.decoder\.layers\.\d+\..*(proj|fc\d)\.weight")
    layers.sparsify(sparsifier).set_format(lacis.Csr)
    if not isinstance(sparsifier, lacis.Magnitude):
        s.calibrate([{"input_ids": ids} for ids in batches], blocks="model.decoder.layers")
    s.build()
    return s


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--zeros", type=float, default=0.85)
    parser.add_argument("--target", default="auto")
    options = parser.parse_args()
    chain, dense = Chain(), make()
    train(dense, chain, options.steps)
    print(f"dense: perplexity {perplexity(dense, chain):.2f}, the best is {chain.best:.2f}")
    batches = [chain.batch() for _ in range(8)]
    zeros = options.zeros
    sparsifiers = (
        lacis.Magnitude(zeros, per="row"),
        lacis.Wanda(zeros),
        lacis.SparseGPT(zeros),
        lacis.Wanda(lacis.NM(2, 4)),
    )
    for sparsifier in sparsifiers:
        model = copy.deepcopy(dense)
        s = prune(model, sparsifier, batches, options.target)
        packed = s["model.decoder.layers.0.fc1.weight"].packed
        share = 1 - packed.nnz / packed.shape.numel()
        print(f"{sparsifier}: {share:.0%} zeros, perplexity {perplexity(model, chain):.2f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a pruned Llama by PEFT's LoRA: the packed base is frozen, and takes the adapters in on its own pattern.

    python examples/lora_on_sparse.py [--steps 400] [--target auto|eager]

The model is made by its configuration, learns one small language while a Ramp prunes it, and then another by adapters.
"""

from __future__ import annotations

import argparse

import lacis
import lacis.hf
import peft
import torch
import transformers
from chain import Chain, perplexity, train

LAYERS = r"model\.layers\.\d+\.(self_attn|mlp)\..*_proj\.weight"


def pruned(chain, steps, target):
    """A model with 80 % zeros in its blocks, which it loses while it learns."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    s = lacis.create_schedule(model, target=target)
    ramp = lacis.Ramp(0.0, 0.8, range(0, steps * 3 // 5 + 1, max(steps // 40, 1)))
    s.match(LAYERS).sparsify(lacis.Magnitude(ramp)).set_format(lacis.Csr)
    s.build()
    attached = []

    def after_step(optimizer):
        if not attached:
            attached.append(s.attach(optimizer))
        attached[0].step()

    train(model, chain, steps, after_step=after_step)
    return model, s


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--target", default="auto")
    options = parser.parse_args()
    first, second = Chain(seed=0), Chain(seed=1)
    model, s = pruned(first, options.steps, options.target)
    weight = s["model.layers.0.mlp.up_proj.weight"]
    print(f"pruned: {weight.packed}")
    print(f"the language it learned: perplexity {perplexity(model, first):.2f}")
    before = weight.packed.pattern.to_mask()
    names = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    wrapped = peft.get_peft_model(model, lacis.hf.lora(peft.LoraConfig(r=16, lora_alpha=32, target_modules=names)))
    wrapped.print_trainable_parameters()
    train(wrapped, second, options.steps, rate=1e-2)
    print(f"with adapters, the other language: perplexity {perplexity(wrapped, second):.2f}")
    merged = wrapped.merge_and_unload()
    assert torch.equal(merged.model.layers[0].mlp.up_proj.weight.packed().pattern.to_mask(), before)
    print(f"merged, what lies off the pattern is dropped: perplexity {perplexity(merged, second):.2f}")
    merged.requires_grad_(True)
    train(merged, second, options.steps // 4)
    print(f"after a few more steps, {weight.packed.nnz} entries as before: perplexity {perplexity(merged, second):.2f}")


if __name__ == "__main__":
    main()

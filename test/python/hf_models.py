# SPDX-License-Identifier: Apache-2.0
"""Small models of transformers with packed layers: what the tests of `lacis.hf` share."""

import torch
import transformers

import lacis

LAYER = "model.layers.0.mlp.up_proj"
SMALL = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=50)
MODELS = {
    "opt": lambda: transformers.OPTConfig(ffn_dim=64, word_embed_proj_dim=32, max_position_embeddings=40, **SMALL),
    "roberta": lambda: transformers.RobertaConfig(max_position_embeddings=40, **SMALL),
    "llama": lambda: transformers.LlamaConfig(num_key_value_heads=1, tie_word_embeddings=False, **SMALL),
}
FORMATS = {
    "csr": lambda group: group.sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr),
    "bsr": lambda group: group.block(24, 24).sparsify(lacis.BlockMagnitude(0.5)).set_format(lacis.Bsr),  # with padding
    "sum": lambda group: group.sparsify(lacis.Magnitude(0.8)).decompose(ell=lacis.Ell(width=4), rest=lacis.Coo),
}


def built(model="llama", format="csr"):
    torch.manual_seed(0)
    config = MODELS[model]()
    made = transformers.AutoModelForMaskedLM if model == "roberta" else transformers.AutoModelForCausalLM
    dense = made.from_config(config).eval()
    s = lacis.create_schedule(dense, target="eager")
    linears = "|".join(n for n, m in dense.named_modules() if type(m) is torch.nn.Linear and "head" not in n)
    FORMATS[format](s.match(rf"({linears})\.weight"))
    return s.build(), made


def answers(model):
    with torch.no_grad():
        return model(torch.arange(24).reshape(2, 12) % 50).logits

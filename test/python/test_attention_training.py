# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face, by configuration, train on a pattern as they do with its mask."""

import pytest
import torch
import torch.nn.functional as F
from strategies import mostly_long
from test_attention_modules import HEADS, LENGTH, WIDTH, kept, made

import lacis

SIZES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "initializer_range": 0.5}
TEXT = {**SIZES, "vocab_size": 50, "intermediate_size": 24}
QUIET = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GPT2 = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "bos_token_id": 1, "eos_token_id": 2}
IMAGES = {"intermediate_size": 24, "image_size": 24, "patch_size": 4}  # 36 pieces, and one that stands for all
WORDS = {"input_ids": torch.arange(2 * LENGTH).reshape(2, -1) % 50}
PIXELS = {"pixel_values": torch.randn(2, 3, 24, 24, generator=torch.Generator().manual_seed(0))}
MODELS = {
    "Llama": (TEXT | {"num_key_value_heads": 2}, r"layers\.\d+\.self_attn", lacis.Local(6, causal=True), WORDS, LENGTH),
    "Bert": (TEXT | QUIET, r"encoder\.layer\.\d+\.attention\.self", lacis.Local(4), WORDS, LENGTH),
    "GPT2": (TEXT | GPT2, r"h\.\d+\.attn", lacis.Local(6, causal=True), WORDS, LENGTH),
    "ViT": (SIZES | IMAGES, r".*layers?\.\d+\.attention(\.attention)?", lacis.Local(5), PIXELS, 37),
}


def losses(model, inputs) -> torch.Tensor:
    """Of 20 steps."""
    optimizer, found = torch.optim.Adam(model.parameters(), lr=1e-3), []
    for _ in range(20):
        state = model(**inputs).last_hidden_state
        loss = (state - torch.linspace(-1, 1, state[0].numel()).view_as(state[0])).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return torch.stack(found)


@pytest.mark.parametrize("name", mostly_long(MODELS, "Llama"))
def test_training_follows_the_masked_model(name, monkeypatch):
    transformers = pytest.importorskip("transformers")
    sizes, path, rule, inputs, length = MODELS[name]
    config = getattr(transformers, f"{name}Config")(**sizes, attn_implementation="sdpa")
    own, masked, whole = (made(lambda: getattr(transformers, f"{name}Model")(config)).train() for _ in range(3))
    s = lacis.create_schedule(own, target="eager")
    s.match(path).sparsify(rule).block(8, 8).set_format(lacis.Bsr)
    found, dense = losses(s.build(), inputs), losses(whole, inputs)
    inner, mask = F.scaled_dot_product_attention, kept(rule, 64, length)
    with_mask = lambda *given, attn_mask=None, is_causal=False, **more: inner(*given, attn_mask=mask, **more)
    monkeypatch.setattr(F, "scaled_dot_product_attention", with_mask)
    torch.testing.assert_close(found, losses(masked, inputs), rtol=1e-4, atol=1e-5)
    assert (found - dense).abs().max() > 1e-3  # else the rule does nothing

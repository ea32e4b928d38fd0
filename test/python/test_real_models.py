# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face, by configuration: pruned and packed, against the dense ones with masked weights."""

import copy

import lacis
import pytest
import torch
from strategies import mostly_long

transformers = pytest.importorskip("transformers")

IDS = torch.randint(0, 90, (2, 7), generator=torch.Generator().manual_seed(0))
IMAGE = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SMALL = {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}


def of(model, config, **options):
    return lambda: getattr(transformers, model)(getattr(transformers, config)(**options))


CASES = {
    "gpt2, its embedding tied to the head": (
        of(
            "GPT2LMHeadModel",
            "GPT2Config",
            vocab_size=96,
            n_embd=32,
            n_layer=1,
            n_head=2,
            bos_token_id=1,
            eos_token_id=2,
        ),
        *(r".*(c_attn|c_proj|c_fc|wte|lm_head)\.weight", {"input_ids": IDS}, 5),
    ),
    "opt": (
        of("OPTForCausalLM", "OPTConfig", **SMALL, ffn_dim=64, word_embed_proj_dim=32),
        *(r".*(proj|fc1|fc2|embed_tokens)\.weight", {"input_ids": IDS}, 7),
    ),
    "mixtral's router": (
        of(
            "MixtralForCausalLM",
            "MixtralConfig",
            **SMALL,
            num_key_value_heads=2,
            intermediate_size=64,
            num_local_experts=4,
        ),
        *(r".*gate\.weight", {"input_ids": IDS}, 1),
    ),
    "vit": (
        of("ViTModel", "ViTConfig", **SMALL, intermediate_size=64, image_size=32, patch_size=8),
        *(r".*(projection|_proj|fc1)\.weight", {"pixel_values": IMAGE}, 6),
    ),
    "resnet": (
        of("ResNetModel", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
        *(r".*convolution\.weight", {"pixel_values": IMAGE}, 8),
    ),
}


@pytest.mark.parametrize("case", mostly_long(CASES, "gpt2, its embedding tied to the head", "resnet"))
def test_logits_and_gradients(case):
    torch.manual_seed(0)
    make, pattern, inputs, count = CASES[case]
    model = make().eval()
    twin = copy.deepcopy(model)
    s = lacis.create_schedule(model, target="eager")
    s.match(pattern).sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    s.build()
    assert len(s.sites) == count
    with torch.no_grad():
        for site in s.sites:
            twin.get_parameter(site.name).copy_(s[site.name].packed.to_dense().reshape(site.shape))
    found, expected = model(**inputs)[0], twin(**inputs)[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    found.square().sum().backward()
    expected.square().sum().backward()
    for site in s.sites:
        packed = s[site.name].packed
        grad = packed.pattern.gather(twin.get_parameter(site.name).grad.reshape(packed.shape))
        torch.testing.assert_close(packed.values.grad, grad, rtol=1e-3, atol=1e-4)
    assert list(dict(s.restore().named_parameters())) == list(dict(twin.named_parameters()))

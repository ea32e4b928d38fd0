# SPDX-License-Identifier: Apache-2.0
"""What calls of a module's attention say: dtypes, masks and configurations as they are then, and caches of keys."""

import pytest
import torch
import torch.nn.functional as F
from strategies import mostly_long
from test_attention_hugging_face import llama
from test_attention_modules import HEADS, LENGTH, WIDTH, Model, SelfAttention, kept, made, sample
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.nn.attention.flex_attention import flex_attention

import lacis

IDS = torch.arange(18).reshape(2, 9)
SIZES = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": HEADS, "vocab_size": 50}
ALL = lacis.Given(torch.ones(1, 1, 1, dtype=torch.bool))
GENERATED = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}


def built(model, path, rule, score=None, block=8, format=lacis.Bsr):
    s = lacis.create_schedule(model, target="eager")
    for each in s.match(path):
        each.sparsify(rule).block(block, block).set_format(format)
        if score is not None:
            each.score(score)
    s.build()
    return s


class Mixed(torch.nn.Module):
    """Queries and keys of float32, and values of autocast, as of models with rotary positions."""

    def __init__(self, attend):
        super().__init__()
        self.values, self.attend = torch.nn.Linear(8, 8), attend

    def forward(self, x):
        return self.attend(x[:, None], x[:, None], self.values(x)[:, None])[:, 0]


BIAS = torch.randn(9, 9, generator=torch.Generator().manual_seed(0))
MIXED = {
    "torch": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=BIAS),
    "flex": lambda q, k, v: flex_attention(q, k, v),
}


@pytest.mark.parametrize("name", MIXED)
def test_autocast_of_mixed_types(name):
    model = made(lambda: torch.nn.Sequential(Mixed(MIXED[name])))
    x = torch.randn(2, 9, 8, generator=torch.Generator().manual_seed(1))
    with torch.autocast("cpu", torch.bfloat16):
        dense = x[:, None].bfloat16(), x[:, None].bfloat16(), model[0].values(x)[:, None]
        expected = F.scaled_dot_product_attention(*dense, attn_mask=BIAS.bfloat16() if name == "torch" else None)[:, 0]
        built(model, "0", ALL, block=16)
        found = model(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    found.float().sum().backward()


@pytest.mark.parametrize("implementation", mostly_long(["sdpa", "eager"], "eager"))
def test_autocast_of_rotary_positions(implementation):
    model = llama(implementation)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        expected = model(IDS).logits
        built(model, r"model\.layers\.\d\.self_attn", lacis.Causal())
        found = model(IDS).logits
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("queries", [5, LENGTH])
@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
def test_causal_biases_of_torch(make, queries):
    """Their memory says nothing."""

    class Last(SelfAttention):
        def forward(self, x, mask=None):
            q, k, v = self.inputs(x).unflatten(-1, (3, HEADS, -1)).movedim(-3, 0).transpose(2, 3)
            return F.scaled_dot_product_attention(q[:, :, -queries:], k, v, attn_mask=mask).transpose(1, 2).flatten(2)

    model, x = made(lambda: torch.nn.ModuleList([Last()])), sample()
    mask = make(queries, LENGTH)
    expected = model[0](x, mask)
    layout = lacis.Given(torch.ones(1, -(-queries // 8), LENGTH // 8, dtype=torch.bool))
    built(model, "0", layout)
    torch.testing.assert_close(model[0](x, mask), expected)


def test_errors_of_operands_name_the_module():
    model, x = made(), sample()
    built(model, "attention", ALL)
    model.attention.options = {"dropout_p": 1.5}
    with pytest.raises(lacis.ScheduleError, match="'attention': .*dropout is from 0 to below 1, not 1.5"):
        model(x)


def test_a_scheduled_module_inside_a_scheduled_module():
    """Each call goes to the module nearest to it."""

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

        def forward(self, x, first=None, second=None):
            mask = None if first is None else ~first[0]
            q = self.inner(x, x, x, need_weights=False, attn_mask=mask)[0][:, None]
            return F.scaled_dot_product_attention(q, q, q, attn_mask=second)[:, 0]

    model, x, inner, outer = (
        made(lambda: torch.nn.ModuleDict({"outer": Outer()})),
        sample(),
        lacis.Local(1),
        lacis.Local(9),
    )
    expected = model["outer"](x, kept(inner), kept(outer))
    s = lacis.create_schedule(model, target="eager")
    s["outer.inner"].sparsify(inner).block(8, 8).set_format(lacis.Bsr)
    s["outer"].sparsify(outer).block(8, 8).set_format(lacis.Bsr)
    s.build()
    torch.testing.assert_close(model["outer"](x), expected)


@pytest.mark.parametrize("way", ["set", "assign"])
def test_an_implementation_that_is_set_later_makes_the_masks(way):
    """Where no mask comes with it, `is_causal` counts."""
    model = llama("eager")
    with torch.no_grad():
        expected = model(IDS).logits
        built(model, r"model\.layers\.\d\.self_attn", ALL, block=16)
        torch.testing.assert_close(model(IDS).logits, expected)
        if way == "set":
            model.set_attn_implementation("sdpa")
        else:
            model.config._attn_implementation = "sdpa"
        torch.testing.assert_close(model(IDS).logits, expected)
    model.config._attn_implementation_internal = "flash_attention_2"
    attention = model.model.layers[0].self_attn
    x = torch.zeros(1, 9, WIDTH)
    with pytest.raises(lacis.ScheduleError, match="attn_implementation='flash_attention_2' has masks of its own"):
        attention(x, position_embeddings=(torch.zeros(1, 9, 4), torch.zeros(1, 9, 4)), attention_mask=None)


def test_weights_that_are_asked_for_later():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(**SIZES, intermediate_size=24, attn_implementation="eager")
    model = made(lambda: transformers.BertModel(config))
    built(model, r"encoder\.layer\.\d\.attention\.self", ALL, block=16)
    model(IDS)
    model.config.output_attentions = True
    with pytest.raises(lacis.ScheduleError, match="asks for attention weights"):
        model(IDS)
    model.config.output_attentions = False
    model(IDS)


def test_a_model_that_calls_torch_where_its_configuration_says_so():
    transformers = pytest.importorskip("transformers")
    model = made(lambda: transformers.FalconForCausalLM(transformers.FalconConfig(**SIZES, attn_implementation="sdpa")))
    run = torch.no_grad()(lambda: model(IDS, use_cache=False).logits)
    expected, attention = run(), model.transformer.h[0].self_attention
    config = attention.config
    built(model, r"transformer\.h\.\d\.self_attention", lacis.Causal())
    assert attention.config is config
    torch.testing.assert_close(run(), expected)


def near(s, b, h, i, j):
    return s - 3 * (h + 1) * (i - j - 2).abs()


def bart():
    transformers = pytest.importorskip("transformers")
    both = {"layers": 1, "attention_heads": HEADS, "ffn_dim": 24}
    sizes = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in both.items()}
    tokens = {"bos_token_id": 1, "eos_token_id": None, "forced_eos_token_id": None, "decoder_start_token_id": 2}
    config = transformers.BartConfig(d_model=WIDTH, vocab_size=50, pad_token_id=0, init_std=0.5, **sizes, **tokens)
    return made(lambda: transformers.BartForConditionalGeneration(config))


@pytest.mark.parametrize("name", ["self_attn", "encoder_attn"])
@pytest.mark.parametrize("length", mostly_long([11, 4, 1], 11))  # which the decoder reaches, or never is below
def test_a_decoder_that_meets_itself_and_an_encoder(name, length):
    """Rules and scores count along the sequence of the decoder."""
    model, ids = bart(), torch.arange(3, 3 + 2 * length).reshape(2, length)
    expected, path = model.generate(ids, **GENERATED), rf"model\.decoder\.layers\.\d\.{name}"
    rule = lacis.Causal() if name == "self_attn" else ALL
    s = built(model, path, rule, block=16)
    assert torch.equal(model.generate(ids, **GENERATED), expected)
    s.restore()
    built(model, path, rule, near, block=16)
    assert torch.equal(model.generate(ids, **GENERATED), model.generate(ids, **GENERATED, use_cache=False))


def test_a_cache_of_another_class_that_keeps_all():
    transformers = pytest.importorskip("transformers")
    layers = pytest.importorskip("transformers.cache_utils")
    model = llama()
    expected = model.generate(IDS, **GENERATED)
    built(model, r"model\.layers\.\d\.self_attn", lacis.Causal())
    cache = transformers.Cache(layer_class_to_replicate=layers.DynamicLayer)
    assert torch.equal(model.generate(IDS, **GENERATED, past_key_values=cache), expected)


def test_a_cache_of_a_window_is_refused():
    transformers = pytest.importorskip("transformers")
    sizes = {**SIZES, "intermediate_size": 24, "num_key_value_heads": 2, "sliding_window": 6}
    model = made(lambda: transformers.MistralForCausalLM(transformers.MistralConfig(**sizes)))
    expected = model.generate(IDS, **GENERATED)
    built(model, r"model\.layers\.\d\.self_attn", lacis.Causal())
    with pytest.raises(lacis.ScheduleError, match="one of a window drops some.*DynamicCache\\(\\) without a config"):
        model.generate(IDS, **GENERATED, past_key_values=transformers.DynamicCache(config=model.config))
    assert torch.equal(model.generate(IDS, **GENERATED, past_key_values=transformers.DynamicCache()), expected)


@pytest.mark.parametrize("rule", [lacis.Documents([4, 20], causal=True), lacis.Documents([4, 7])], ids=repr)
def test_documents_with_a_cache(rule):
    transformers = pytest.importorskip("transformers")
    model = llama()
    built(model, r"model\.layers\.\d\.self_attn", rule)
    cache = transformers.DynamicCache()
    with torch.no_grad():
        expected = model(IDS, use_cache=False).logits
        model(IDS[:, :6], past_key_values=cache)
        steps = [model(IDS[:, n : n + 1], past_key_values=cache).logits for n in range(6, 9)]
    torch.testing.assert_close(torch.cat(steps, 1), expected[:, 6:])


def test_documents_refuse():
    x = sample()
    model = made(lambda: torch.nn.ModuleDict({"attn": torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)}))
    built(model, "attn", lacis.Documents([9, 31]))
    with pytest.raises(lacis.ScheduleError, match="3 queries meet 40 keys, and Documents.* counts both from 0"):
        model["attn"](x[:, :3], x, x, need_weights=False)
    with pytest.raises(lacis.DataError, match="lengths of documents are whole numbers, 0 or more, not .1.5."):
        lacis.Documents([1.5])


@pytest.mark.long
def test_documents_are_one_kernel():
    """With places of queries that are computed, too."""
    model, x = made(Model), sample()
    for rule in (lacis.Documents([9, 0, 25], causal=True), lacis.LastQueries(lacis.Documents([9, 0, 25]))):
        expected = model(x, kept(getattr(rule, "rule", rule)))
        s = lacis.create_schedule(model, target="cpu")
        s["attention"].sparsify(rule).block(8, 8).set_format(lacis.Bsr)
        torch.testing.assert_close(s.build()(x), expected)
        assert s["attention"].kernels  # refused where it ran statement by statement
        s.restore()


def test_documents_made_in_inference_mode_train():
    x = sample()
    model = made()
    built(model, "attention", lacis.Documents([9, 31]))
    with torch.inference_mode():
        expected = model(x)
    found = model(x)
    found.sum().backward()
    torch.testing.assert_close(found.detach(), expected.clone())

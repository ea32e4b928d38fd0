# SPDX-License-Identifier: Apache-2.0
"""Attention of models of Hugging Face on a pattern, by configuration."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from strategies import mostly_long
from test_attention_modules import HEADS, LENGTH, WIDTH, kept, made

import lacis
from lacis.nn import hugging_face


@pytest.mark.parametrize("implementation", mostly_long(["sdpa", "eager", "flex_attention"], "eager"))
def test_bert(implementation):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "vocab_size": 50}
    config = transformers.BertConfig(**sizes, intermediate_size=24, attn_implementation=implementation)
    model = made(lambda: transformers.BertModel(config))
    ids = torch.randint(0, 50, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    padding = (torch.arange(LENGTH) < torch.tensor([[LENGTH], [25]])).long()
    run = torch.no_grad()(lambda mask: model(ids, attention_mask=mask).last_hidden_state[padding.bool()])
    expected, own = run(padding), model.encoder.layer[0].attention.self
    for rule in (lacis.Given(torch.ones(1, 3, 3, dtype=torch.bool)), lacis.Local(4)):
        s = lacis.create_schedule(model, target="eager")
        attentions = s.match(r"encoder\.layer\.\d+\.attention\.self")
        attentions.sparsify(rule).block(16, 16).set_format(lacis.Bsr)
        with torch.no_grad():
            s.build(ids, attention_mask=padding)
        found = run(padding)
        assert own.config._attn_implementation == "lacis" and config._attn_implementation == implementation
        assert "attends on Local" in str(s.report(ids)) or isinstance(rule, lacis.Given)
        s.restore()
        assert own.config is config
    torch.testing.assert_close(run(padding), expected)
    if implementation == "flex_attention":  # which takes no mask of entries
        return
    local = padding[:, None, None].bool() & kept(lacis.Local(4), 64)
    local = local if implementation == "sdpa" else torch.where(local, 0.0, torch.finfo(torch.float32).min)
    torch.testing.assert_close(found, run(local))


@pytest.mark.long
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name, path", [("Llama", r"layers\.\d+\.self_attn"), ("GPT2", r"h\.\d+\.attn")])
def test_other_models_of_hugging_face(name, path, implementation):
    """Grouped heads, and padding on the left."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "vocab_size": 50}
    more = {"num_key_value_heads": 2, "intermediate_size": 24} if name == "Llama" else {"pad_token_id": 0}
    config = getattr(transformers, f"{name}Config")(**sizes, **more, bos_token_id=1, eos_token_id=2)
    config._attn_implementation = implementation
    model = made(lambda: getattr(transformers, f"{name}Model")(config))
    ids = torch.randint(0, 50, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    padding = (torch.arange(LENGTH) >= torch.tensor([[0], [11]])).long()
    run = lambda: model(ids, attention_mask=padding, use_cache=False).last_hidden_state[padding.bool()]
    expected = run()
    s = lacis.create_schedule(model, target="eager")
    s.match(path).sparsify(lacis.Causal()).block(8, 8).set_format(lacis.Bsr)
    s.build(ids, attention_mask=padding, use_cache=False)
    torch.testing.assert_close(run(), expected)


def llama(implementation="sdpa"):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "vocab_size": 50}
    config = transformers.LlamaConfig(**sizes, intermediate_size=24, attn_implementation=implementation)
    return made(lambda: transformers.LlamaForCausalLM(config))


GENERATED = [("sdpa", lacis.Bsr), ("eager", lacis.Bsr), ("flex_attention", lacis.Bsr), ("sdpa", lacis.Csr)]


@pytest.mark.parametrize("implementation, format", mostly_long(GENERATED, GENERATED[0]))
def test_a_cache_of_keys(implementation, format):
    """Tokens are those of the model for a rule that keeps all, else those without a cache, with padding on the left."""
    whole, model, ids = llama(), llama(implementation), torch.arange(18).reshape(2, 9)
    padding = torch.ones(2, 9, dtype=torch.int64)
    padding[1, :2] = 0
    said = {"attention_mask": padding, "max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    for rule, expected in ((lacis.Causal(), whole.generate(ids, **said)), (lacis.Local(7, causal=True), None)):
        s = lacis.create_schedule(model, target="eager")
        s.match(r"model\.layers\.\d\.self_attn").sparsify(rule).block(8, 8).set_format(format)
        s.build()
        expected = model.generate(ids, **said, use_cache=False) if expected is None else expected
        assert torch.equal(model.generate(ids, **said), expected)
        s.restore()


def test_tokens_are_those_of_the_masked_model(monkeypatch):
    """With a cache of keys, of the mask written out."""
    ids = torch.arange(18).reshape(2, 9)
    said = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    model, plain = llama(), llama()
    s = lacis.create_schedule(model, target="eager")
    s.match(r"model\.layers\.\d\.self_attn").sparsify(lacis.Local(3, causal=True)).block(8, 8).set_format(lacis.Bsr)
    found, dense, inner = s.build().generate(ids, **said), plain.generate(ids, **said), F.scaled_dot_product_attention

    def masked(q, k, v, attn_mask=None, is_causal=False, **more):
        i, j = torch.arange(k.shape[2] - q.shape[2], k.shape[2])[:, None], torch.arange(k.shape[2])
        return inner(q, k, v, attn_mask=(j <= i) & (i - j <= 3), **more)

    monkeypatch.setattr(F, "scaled_dot_product_attention", masked)
    assert torch.equal(found, plain.generate(ids, **said)) and not torch.equal(found, dense)


def test_a_score_counts_along_the_sequence():
    """With a cache of keys as without."""
    model, ids = llama(), torch.arange(18).reshape(2, 9)
    said = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    s = lacis.create_schedule(model, target="eager")
    for attention in s.match(r"model\.layers\.\d\.self_attn"):
        attention.sparsify(lacis.Causal()).block(8, 8).set_format(lacis.Bsr)
        attention.score(lambda s, b, h, i, j: s - 3 * (h + 1) * (i - j - 2).abs())
    s.build()
    assert torch.equal(model.generate(ids, **said), model.generate(ids, **said, use_cache=False))


REFUSED = [
    ("Causal", lacis.Causal(), lacis.Bsr, None),
    ("LastQueries", lacis.LastQueries(lacis.Causal()), lacis.Bsr, None),
    ("TopKBlocks", lacis.TopKBlocks(1), lacis.BlockedEll, None),
    ("its score", lacis.Given(torch.ones(9, 11).bool()), lacis.Bsr, lambda s, b, h, i, j: s - (i - j)),
]


@pytest.mark.parametrize("who, rule, format, score", REFUSED)
def test_a_cache_of_a_fixed_length_is_refused(who, rule, format, score):
    """It has places for keys that are to come, so that the queries are not its last."""
    model = llama()
    s = lacis.create_schedule(model, target="eager")
    attention = s["model.layers.0.self_attn"].sparsify(rule).block(8, 8).set_format(format)
    if score is not None:
        attention.score(score)
    s.build()
    said = f"self_attn': 9 queries meet 11 keys of a cache that are not .* where {who}.* counts them is not known; take"
    with pytest.raises(lacis.ScheduleError, match=said):
        model.generate(torch.arange(9)[None], max_new_tokens=3, do_sample=False, cache_implementation="static")


def test_fewer_queries_than_keys_without_a_cache():
    """Nothing says where they stand."""
    x = torch.randn(2, 9, WIDTH)
    model = torch.nn.ModuleDict({"attn": torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)})
    s = lacis.create_schedule(model)
    s["attn"].sparsify(lacis.Causal()).block(8, 8).set_format(lacis.Bsr)
    said = "3 queries meet 9 keys, and Causal.* counts both from 0; .*LastQueries"
    with pytest.raises(lacis.ScheduleError, match=said):
        s.build()["attn"](x[:, :3], x, x, need_weights=False)


@pytest.mark.parametrize("name", mostly_long(["GptOss", "Gemma2"], "GptOss"))
def test_sinks_caps_and_windows(name):
    """Sinks, and scores that are capped; one layer has a window in its mask."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "num_key_value_heads": 2}
    more = {"vocab_size": 50, "intermediate_size": 24, "head_dim": 4, "sliding_window": 6}
    more |= {"attn_logit_softcapping": 0.2} if name == "Gemma2" else {"num_local_experts": 2, "num_experts_per_tok": 1}
    config = getattr(transformers, f"{name}Config")(**sizes, **more, attn_implementation="eager")
    model = made(lambda: getattr(transformers, f"{name}Model")(config))
    ids = torch.randint(0, 50, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    run = torch.no_grad()(lambda: model(ids, use_cache=False).last_hidden_state)
    expected = run()
    s = lacis.create_schedule(model, target="eager")
    s.match(r"layers\.\d+\.self_attn").sparsify(lacis.Causal()).block(8, 8).set_format(lacis.Bsr)
    s.build()
    torch.testing.assert_close(run(), expected, rtol=1e-4, atol=1e-5)


def test_refusals_of_models():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": HEADS, "vocab_size": 50}
    config = transformers.BertConfig(**sizes, intermediate_size=24, attn_implementation="eager")
    model = made(lambda: transformers.BertModel(config))
    ids, path = torch.arange(9)[None], "encoder.layer.0.attention.self"

    def scheduled():
        s = lacis.create_schedule(model, target="eager")
        s[path].sparsify(lacis.Local(4)).block(8, 8).set_format(lacis.Bsr)
        return s

    s = scheduled()
    s.build(ids)
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again(ids).last_hidden_state, model(ids).last_hidden_state)
    with pytest.raises(lacis.ScheduleError, match=f"'{path}': the model asks for attention weights.*leave output_att"):
        model(ids, output_attentions=True)
    own = model.get_submodule(path)
    with pytest.raises(RuntimeError, match="was called past the module that a schedule of lacis names"):
        type(own).__mro__[1].forward(own, torch.zeros(1, 9, WIDTH))
    with pytest.raises(lacis.ScheduleError, match="is given 'sinks', which has no code"):
        hugging_face._said(own._lacis_door, own, torch.zeros(1, 1, 9, 4), None, {"sinks": torch.zeros(1)})
    s.restore()
    own.config = copy.copy(config)
    own.config._attn_implementation = "flash_attention_2"
    with pytest.raises(lacis.ScheduleError, match="attn_implementation='flash_attention_2' has masks of its own; load"):
        scheduled().build(ids)

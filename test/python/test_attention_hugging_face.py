# SPDX-License-Identifier: Apache-2.0
"""Attention of models of Hugging Face on a pattern, by configuration."""

import pytest
import torch
from test_attention_modules import HEADS, LENGTH, WIDTH, kept, made

import lacis


def test_bert():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=24, vocab_size=50
    )
    model = made(lambda: transformers.BertModel(config))
    ids = torch.randint(0, 50, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    padding = (torch.arange(LENGTH) < torch.tensor([[LENGTH], [25]])).long()
    run = lambda mask: model(ids, attention_mask=mask).last_hidden_state[padding.bool()]
    expected = run(padding)
    for rule in (lacis.Given(torch.ones(1, 3, 3, dtype=torch.bool)), lacis.Local(4)):
        s = lacis.create_schedule(model, target="eager")
        attentions = s.match(r"encoder\.layer\.\d+\.attention\.self")
        attentions.sparsify(rule).block(16, 16).set_format(lacis.Bsr)
        s.build(ids, attention_mask=padding)
        found = run(padding)
        assert "attends on Local" in str(s.report(ids)) or isinstance(rule, lacis.Given)
        s.restore()
    torch.testing.assert_close(run(padding), expected)
    local = padding[:, None, None].bool() & kept(lacis.Local(4), 64)
    torch.testing.assert_close(found, run(local))


@pytest.mark.long
@pytest.mark.parametrize("name, path", [("Llama", r"layers\.\d+\.self_attn"), ("GPT2", r"h\.\d+\.attn")])
def test_other_models_of_hugging_face(name, path):
    """Grouped heads, and padding on the left."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "vocab_size": 50}
    more = {"num_key_value_heads": 2, "intermediate_size": 24} if name == "Llama" else {"pad_token_id": 0}
    config = getattr(transformers, f"{name}Config")(**sizes, **more, bos_token_id=1, eos_token_id=2)
    model = made(lambda: getattr(transformers, f"{name}Model")(config))
    ids = torch.randint(0, 50, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    padding = (torch.arange(LENGTH) >= torch.tensor([[0], [11]])).long()
    run = lambda: model(ids, attention_mask=padding, use_cache=False).last_hidden_state[padding.bool()]
    expected = run()
    s = lacis.create_schedule(model, target="eager")
    s.match(path).sparsify(lacis.Causal()).block(8, 8).set_format(lacis.Bsr)
    s.build(ids, attention_mask=padding, use_cache=False)
    torch.testing.assert_close(run(), expected)


def test_a_cache_of_keys_is_refused():
    """The queries are its last ones, and rules count them from 0."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": HEADS, "vocab_size": 50}
    model = made(lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, intermediate_size=24)))
    ids = torch.arange(9)[None]
    expected = model.generate(ids, max_new_tokens=2, do_sample=False, use_cache=False)
    s = lacis.create_schedule(model, target="eager")
    s["model.layers.0.self_attn"].sparsify(lacis.Causal()).block(8, 8).set_format(lacis.Bsr)
    s.build()
    assert torch.equal(model.generate(ids, max_new_tokens=2, do_sample=False, use_cache=False), expected)
    with pytest.raises(
        lacis.ScheduleError, match="1 queries meet 10 keys, and Causal.* counts both from 0.*use_cache=F"
    ):
        model.generate(ids, max_new_tokens=2, do_sample=False)

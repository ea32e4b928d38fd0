# SPDX-License-Identifier: Apache-2.0
"""Modules that attend: a rule given to `s["path"]` decides which pairs their attention computes."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F

import lacis

LENGTH, WIDTH, HEADS = 40, 16, 4


class SelfAttention(torch.nn.Module):
    """As models write it; the mask, if any, goes to torch."""

    def __init__(self, **options):
        super().__init__()
        self.inputs, self.options = torch.nn.Linear(WIDTH, 3 * WIDTH), options

    def forward(self, x, mask=None):
        q, k, v = self.inputs(x).unflatten(-1, (3, HEADS, -1)).movedim(-3, 0).transpose(2, 3)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **self.options).transpose(1, 2).flatten(2)


class Model(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.attention, self.head = SelfAttention(**options), torch.nn.Linear(WIDTH, 3)

    def forward(self, x, mask=None):
        return self.head(self.attention(x, mask))


def made(cls=Model, **options):
    torch.manual_seed(3)
    return cls(**options).eval()


def sample(batch=2, length=LENGTH):
    return torch.randn(batch, length, WIDTH, generator=torch.Generator().manual_seed(4))


def kept(rule, block=8, length=LENGTH):
    mask = rule.layout(HEADS, length, length, block).repeat_interleave(block, 1).repeat_interleave(block, 2)
    mask = mask[:, :length, :length]
    function = rule.entry_mask(length, length, block)
    if function is None:
        return mask
    i, j = torch.arange(length)[:, None], torch.arange(length)[None]
    return mask & function(torch.tensor(0), torch.tensor(0), i, j)


RULE = lacis.BigBird(different_layout_per_head=True, attention="unidirectional")


@pytest.mark.parametrize("format", [lacis.Bsr, lacis.BlockedEll])
def test_a_module_attends_on_the_pattern_of_its_rule(format):
    model, x = made(), sample()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    expected = model(x, kept(RULE))
    cls = type(model.attention)
    s = lacis.create_schedule(model, target="eager")
    s["attention"].sparsify(RULE).block(8, 8).set_format(format)
    s.build(x)
    assert isinstance(model.attention, SelfAttention) and type(model.attention) is not cls
    torch.testing.assert_close(model(x), expected)
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(pickle.loads(pickle.dumps(model))(x), model(x))
    short = sample(length=21)
    torch.testing.assert_close(copy.deepcopy(model)(short), s.restore()(short, kept(RULE, length=21)))
    assert type(model.attention) is cls and "_lacis_door" not in vars(model.attention)
    assert not model.attention._forward_pre_hooks


def test_weights_inside_are_packed_too():
    model, x = made(), sample()
    s = lacis.create_schedule(model, target="eager")
    s["attention.inputs.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    s["attention"].sparsify(RULE).block(8, 8).set_format(lacis.Bsr)
    s.build(x)
    found = model(x)
    torch.testing.assert_close(found, s.restore()(x, kept(RULE)))
    assert type(model.attention) is SelfAttention


def test_another_module_in_its_place_is_left_alone():
    model, x = made(), sample()
    s = lacis.create_schedule(model, target="eager")
    s["attention"].sparsify(RULE).block(8, 8).set_format(lacis.Bsr)
    s.build(x)
    model.attention = other = SelfAttention()
    assert s.restore().attention is other and type(other) is SelfAttention


def test_entries_in_a_format_without_blocks():
    model, x, rule = made(), sample(), lacis.Local(3)
    s = lacis.create_schedule(model, target="eager")
    s["attention"].sparsify(rule).set_format(lacis.Csr)
    s.build()
    torch.testing.assert_close(model(x), s.restore()(x, kept(rule, 64)))


def test_masks_and_options_of_the_call():
    x, rule = sample(), lacis.Fixed(num_local_blocks=2)
    padding = (torch.arange(LENGTH) < torch.tensor([[LENGTH], [25]]))[:, None, None]
    entries = torch.rand(2, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(1)) < 0.8
    bias = torch.randn(HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(2))
    for mask, options in [(padding, {}), (padding.float(), {}), (entries, {}), (bias, {"scale": 0.7})]:
        model = made(**options)
        s = lacis.create_schedule(model, target="eager")
        s["attention"].sparsify(rule).block(8, 8).set_format(lacis.Bsr)
        s.build()
        found = model(x, mask)
        both = torch.where(kept(rule), mask, -torch.inf) if mask.is_floating_point() else kept(rule) & mask
        torch.testing.assert_close(found, s.restore()(x, both))
    model = made(is_causal=True)
    s = lacis.create_schedule(model, target="eager")
    s["attention"].sparsify(rule).block(8, 8).set_format(lacis.Bsr)
    s.build()
    found = model(x)
    s.restore()
    model.attention.options = {}
    torch.testing.assert_close(found, model(x, kept(rule) & torch.ones(LENGTH, LENGTH).tril().bool()))


def test_scores_change_by_a_function():
    x, slopes = sample(), torch.rand(HEADS)
    model, rule = made(), lacis.Causal()
    s = lacis.create_schedule(model, target="eager")

    def alibi(score, b, h, i, j):
        return score - slopes[h] * (i - j)

    handle = s["attention"].sparsify(rule).block(8, 8).set_format(lacis.Bsr).score(alibi)
    assert repr(handle).endswith(".score(test_scores_change_by_a_function.<locals>.alibi)")
    with pytest.raises(lacis.ScheduleError, match="has a score function already"):
        handle.score(alibi)
    with pytest.raises(lacis.ScheduleError, match="has no place in a file"):
        s.save("nowhere")
    s.build()
    distance = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)
    bias = torch.where(kept(rule), -slopes[:, None, None] * distance, -torch.inf)
    torch.testing.assert_close(model(x), s.restore()(x, bias))


def test_training_follows_the_masked_model():
    x, rule, mask = sample(1, 24), lacis.Longformer(), None
    losses = []
    for sparse in (True, False):
        model = made().train()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        if sparse:
            s = lacis.create_schedule(model, target="eager")
            s["attention"].sparsify(rule).block(8, 8).set_format(lacis.Bsr)
            s.build()
        else:
            mask = kept(rule, length=24)
        losses.append([])
        for _ in range(8):
            loss = model(x, mask).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.detach())
    torch.testing.assert_close(*map(torch.stack, losses), rtol=1e-4, atol=1e-6)


def test_blocks_that_follow_the_data():
    model, x = made(), sample()
    expected = model(x)
    s = lacis.create_schedule(model, target="eager")
    s["attention"].sparsify(lacis.TopKBlocks(2)).block(8, 8).set_format(lacis.BlockedEll(width=2))
    s.build(x)
    assert not torch.allclose(model(x), expected)
    s.restore()
    s = lacis.create_schedule(model, target="eager")
    s["attention"].sparsify(lacis.TopKBlocks(99)).block(8, 8).set_format(lacis.BlockedEll)
    torch.testing.assert_close(s.build(x)(x), expected)


def test_blocks_of_a_rule_s_own_side():
    """Where neither `.block` nor the format says another; the schedule shows them."""
    model, x, rule = made(), sample(), lacis.Causal(block=16)
    s = lacis.create_schedule(model, target="eager")
    s["attention"].sparsify(rule).set_format(lacis.Bsr)
    assert s["attention"].format == lacis.Bsr(16, 16) and "i floordiv 16" in str(s)
    expected = model(x, mask=torch.ones(LENGTH, LENGTH).tril().bool())
    torch.testing.assert_close(s.build(x)(x), expected)


@pytest.mark.parametrize("path", ["layers.0.self_attn", "layers.0"])
def test_multihead_attention_of_torch(path):
    """In inference, too, where torch's encoder layers would go past the module."""
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 24, batch_first=True, dropout=0.0)
    model = made(lambda: torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False))
    x, rule = sample(), lacis.Local(5)
    padding = torch.arange(LENGTH) >= torch.tensor([[LENGTH], [25]])
    with torch.no_grad():
        expected = model(x, mask=~kept(rule, 64)[0])
        padded = model(x, mask=~kept(rule, 64)[0], src_key_padding_mask=padding)[~padding]
        s = lacis.create_schedule(model, target="eager")
        s[path].sparsify(rule).block(8, 8).set_format(lacis.Bsr)
        s.build(x)
        torch.testing.assert_close(model(x), expected)
        torch.testing.assert_close(model(x, src_key_padding_mask=padding)[~padding], padded)


def test_the_schedule_prints_and_saves(tmp_path):
    s = lacis.create_schedule(made(), target="eager")
    rule = lacis.Variable(local_window_blocks=[1, 2], num_random_blocks=1, seed=5)
    handle = s["attention"].sparsify(rule).block(8, 8).set_format(lacis.Bsr)
    assert repr(handle).startswith('s["attention"].sparsify(Variable(') and ".block(8, 8)" in str(s)
    s.save(tmp_path / "schedule.json")
    model, x = made(), sample()
    again = lacis.load_schedule(tmp_path / "schedule.json", model)
    assert str(again["attention"]) == str(handle)
    again.build(x)
    assert torch.equal(model(x), s.build()(x))


class Silent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.Identity()

    def forward(self, x):
        return self.attention(x)


def test_refusals():
    x = sample()
    s = lacis.create_schedule(made(), target="eager")
    with pytest.raises(lacis.ScheduleError, match="takes a rule of attention like lacis.BigBird"):
        s["attention"].sparsify(lacis.Magnitude(0.5))
    for say in (lambda handle: handle.sparsify(lacis.Causal), lambda handle: handle.score(torch.add)):
        with pytest.raises(lacis.ScheduleError, match="'head.weight' is no module that attends, and"):
            say(s["head.weight"])
    with pytest.raises(lacis.ScheduleError, match="a function of \\(score, b, h, i, j\\) is needed"):
        s["attention"].score(2)
    with pytest.raises(
        NotImplementedError, match="'decompose' of a module is not built yet; it takes .*, and verbs of"
    ):
        s["attention"].decompose(a=lacis.Ell(width=1), b=lacis.Csr)
    assert s["attention"].steps == ()
    s["attention"].set_format(lacis.Bsr(8, 8))
    with pytest.raises(lacis.ScheduleError, match="has a format, but no rule"):
        s.build(x)
    s = lacis.create_schedule(made(), target="eager")
    s["attention"].sparsify(lacis.TopKBlocks(2)).block(8, 8).set_format(lacis.Bsr)
    with pytest.raises(lacis.ScheduleError, match="take set_format\\(lacis.BlockedEll\\)"):
        s.build(x)
    silent = Silent()
    s = lacis.create_schedule(silent, target="eager")
    s["attention"].sparsify(lacis.Causal).block(8, 8).set_format(lacis.Bsr)
    with pytest.raises(lacis.ScheduleError, match="asked for no attention in its forward"):
        s.build(x)
    assert type(silent.attention) is torch.nn.Identity and silent(x) is x
    s.build()
    with pytest.raises(lacis.ScheduleError, match="asked for no attention in its forward"):
        silent(x)


def test_attention_weights_are_refused():
    model = torch.nn.Sequential(torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    s = lacis.create_schedule(model, target="eager")
    s["0"].sparsify(lacis.Causal).block(8, 8).set_format(lacis.Bsr)
    s.build()
    x = sample()
    with pytest.raises(lacis.ScheduleError, match="asks for attention weights"):
        model[0](x, x, x)
    assert model[0](x, x, x, need_weights=False)[0].shape == x.shape

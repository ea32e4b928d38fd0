# SPDX-License-Identifier: Apache-2.0
"""Attention of BigBird and Longformer of transformers beside `lacis.attention`, and the sliding window of DeepSpeed."""

import numpy as np
import pytest
import torch
from strategies import mostly_long

import lacis

HEADS, BLOCK, LAYERS, LENGTH = 4, 4, 2, 96
SIZES = {"hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 24}
QUIET = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "vocab_size": 50}
TARGETS = mostly_long(["eager", "cpu"], "eager")


def ids(batch=2):
    return torch.randint(5, 50, (batch, LENGTH), generator=torch.Generator().manual_seed(0))


def padding():
    return (torch.arange(LENGTH) < torch.tensor([[LENGTH], [70]])).long()


def often(drawn, blocks):
    """How often each query block reads each key block [H, blocks, blocks]: again where it is drawn, too."""
    counts = torch.zeros(len(drawn), blocks, blocks, dtype=torch.long)
    for row in range(1, blocks - 1):
        for column in {0, row - 1, row, row + 1, blocks - 1}:
            counts[:, row, column] += 1
        for head, columns in enumerate(drawn):
            for column in columns[row - 1]:
                counts[head, row, column] += 1
    counts[:, 0], counts[:, -1] = 1, 1
    return counts


def bird(target):
    """What stands for `BigBirdBlockSparseAttention.bigbird_block_sparse_attention`."""

    def attend(self, q, k, v, band, rows, keys, *_, seed, plan_from_length, plan_num_rand_blocks):
        if self.training:
            np.random.seed(seed)
        length = q.shape[2]
        plan, numbers = self._get_rand_attn_plan(length, self.block_size, self.num_random_blocks)
        drawn = self._bigbird_block_rand_mask_with_head(
            from_seq_length=length, to_seq_length=length, from_block_size=self.block_size,
            to_block_size=self.block_size, num_heads=HEADS, plan_from_length=plan, plan_num_rand_blocks=numbers,
        )  # fmt: skip
        counts = often(drawn, length // self.block_size)
        weights = counts.double().log().to(q.dtype)
        score = lambda s, b, h, i, j: s + weights[h, i // self.block_size, j // self.block_size]
        found = lacis.attention(q, k, v, counts > 0, score=score, key_padding=keys[:, 0, 0] > 0, target=target)
        return found.transpose(1, 2).contiguous(), None

    return attend


def birds(transformers):
    config = transformers.BigBirdConfig(**SIZES, **QUIET, block_size=BLOCK, num_random_blocks=3, pad_token_id=0)
    torch.manual_seed(1)
    return transformers.BigBirdForMaskedLM(config)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("training", [False, True])
def test_logits_of_bigbird(training, target, monkeypatch):
    """In evaluation all random blocks are the first one, which weighs as often; in training each head has its own."""
    transformers = pytest.importorskip("transformers")
    model, kept = birds(transformers).train(training), padding()
    run = torch.no_grad()(lambda: model(ids(), attention_mask=kept).logits[kept.bool()])
    expected = run()
    own = type(model.bert.encoder.layer[0].attention.self)
    monkeypatch.setattr(own, "bigbird_block_sparse_attention", bird(target))
    torch.testing.assert_close(run(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.long
def test_training_follows_bigbird(monkeypatch):
    """20 steps, each with new random blocks for each layer and head."""
    transformers = pytest.importorskip("transformers")
    losses = []
    for ours in (False, True):
        model = birds(transformers).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        if ours:
            own = type(model.bert.encoder.layer[0].attention.self)
            monkeypatch.setattr(own, "bigbird_block_sparse_attention", bird("eager"))
        losses.append([])
        for _ in range(20):
            loss = model(ids(), attention_mask=padding(), labels=ids()).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.detach())
    assert losses[0][-1] < 0.9 * losses[0][0]
    torch.testing.assert_close(*map(torch.stack, losses), rtol=1e-4, atol=1e-4)


def longformer(target):
    """What stands for `LongformerSelfAttention.forward`: tokens see those near and global ones; these see all, by
    projections of their own."""

    def forward(self, states, attention_mask=None, is_index_masked=None, is_index_global_attn=None, **_):
        of_heads = lambda name: getattr(self, name)(states).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        places, globally = torch.arange(states.shape[1]), is_index_global_attn
        near = (places[:, None] - places).abs() <= self.one_sided_attn_window_size
        found = 0
        ways = (~globally, near | globally[:, None], ""), (globally, torch.tensor(True), "_global")
        for rows, seen, suffix in ways:
            kept = rows[:, :, None] & seen & ~is_index_masked[:, None]
            pattern = lacis.Pattern.from_mask(kept[:, None].expand(-1, self.num_heads, -1, -1), ENTRIES)
            operands = (of_heads(name + suffix) for name in ("query", "key", "value"))
            found = found + lacis.attention(*operands, pattern, target=target)
        return (found.transpose(1, 2).flatten(2),)

    return forward


ENTRIES = "(b, h, i, j) -> (b : dense, h : dense, i : dense, j : compressed)"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("tokens", mostly_long([[], [0], [0, 40, 41]], [0, 40, 41]), ids=str)
def test_logits_of_longformer(tokens, target, monkeypatch):
    transformers = pytest.importorskip("transformers")
    config = transformers.LongformerConfig(**SIZES, **QUIET, attention_window=16, pad_token_id=1)
    torch.manual_seed(1)
    model, kept = transformers.LongformerForMaskedLM(config).eval(), padding()
    everywhere = torch.zeros_like(kept)
    everywhere[0, tokens] = 1  # the second text has one less
    everywhere[1, tokens[1:]] = 1
    run = lambda: model(ids(), attention_mask=kept, global_attention_mask=everywhere).logits[kept.bool()]
    with torch.no_grad():
        expected = run()
        own = type(model.longformer.encoder.layer[0].attention.self)
        monkeypatch.setattr(own, "forward", longformer(target))
        torch.testing.assert_close(run(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("attention", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("width", [2, 3, 4])
def test_a_local_sliding_window_of_deepspeed(width, attention):
    """As its text has it, for even widths too; one that is cropped from a longer one is the same."""
    down = attention == "unidirectional"
    for length in (176, 512, 2048):
        blocks = length // 16
        layout = torch.zeros(blocks, blocks, dtype=torch.bool)
        for row in range(blocks):
            layout[row, max(0, row - width // 2) : row + 1 if down else min(row + width // 2 + 1, blocks)] = True
        rule = lacis.Longformer(num_sliding_window_blocks=width, global_block_indices=(), attention=attention)
        assert torch.equal(rule.layout(4, length, length, 16)[0], layout)
        assert torch.equal(lacis.Local(width // 2 * 16, causal=down).layout(4, length, length, 16)[0], layout)
        assert torch.equal(rule.layout(4, 2048, 2048, 16)[0, :blocks, :blocks], layout)
        dense = lacis.Given(torch.ones(1, blocks, blocks, dtype=torch.bool))  # its sixth
        assert dense.layout(4, length, length, 16).all()

# SPDX-License-Identifier: Apache-2.0
"""Rules where the queries are the last of the keys' sequence: the last rows of what the rule says of all of it."""

import copy
import math
import types

import pytest
import torch
from strategies import mostly_long
from test_attention_on_tiles import kernels  # noqa: F401

import lacis
from lacis.attentions import fused
from lacis.runtime import chain

HEADS, KEYS = 4, 53
RULES = {
    "Causal": lacis.Causal(block=8),
    "Local": lacis.Local(9, causal=True, block=8),
    "both ways": lacis.Local(9, block=8),
    "BigBird": lacis.BigBird(num_random_blocks=1, block=8),
    "by head": lacis.BigBird(num_random_blocks=2, block=8, different_layout_per_head=True),
    "Longformer": lacis.Longformer(block=8, attention="unidirectional"),
    "Dilated": lacis.Dilated(3, 2, block=8),
    "Documents": lacis.Documents([20, 30, 3], causal=True, block=8),
    "Given": lacis.Given(torch.rand(KEYS, KEYS, generator=torch.Generator().manual_seed(0)) < 0.5),
}


def entries(rule, queries: int, keys: int = KEYS) -> torch.Tensor:
    """bool [H, Sq, Sk]: the last rows of those of the whole sequence."""
    layout = rule.layout(HEADS, keys, keys, rule.block).expand(HEADS, -1, -1)
    kept = layout.repeat_interleave(rule.block, 1).repeat_interleave(rule.block, 2)[:, :keys, :keys]
    mask, (h, i, j) = rule.entry_mask(keys, keys, rule.block), kept.nonzero(as_tuple=True)
    if mask is not None:
        kept = torch.zeros_like(kept).index_put((h, i, j), torch.as_tensor(mask(torch.zeros_like(h), h, i, j)))
    return kept[:, keys - queries :]


def operands(queries: int, keys: int = KEYS):
    return torch.randn(2, HEADS, queries, 8), *torch.randn(2, 2, HEADS, keys, 8)


TURNS = [(name, queries) for name in RULES for queries in (1, 3, 16, 53)]  # 3 and 16 reach into two blocks and three


@pytest.mark.parametrize("name, queries", mostly_long(TURNS, ("Local", 3)))
def test_the_last_rows(name, queries):
    rule, (q, k, v) = RULES[name], operands(queries)
    scores = (q @ k.transpose(2, 3) / math.sqrt(8)).masked_fill(~entries(rule, queries), -math.inf)
    expected = scores.softmax(-1) @ v
    for target in ("auto", "eager"):
        found = lacis.attention(q, k, v, lacis.LastQueries(rule), target=target)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_all_queries_are_the_rule():
    q, k, v = operands(KEYS)
    rule = lacis.Local(9, block=8)
    assert torch.equal(lacis.attention(q, k, v, lacis.LastQueries(rule)), lacis.attention(q, k, v, rule))


def test_steps_of_a_generation_are_one_kernel(monkeypatch):
    """Where the queries stand is a number that it reads; a rule that is made anew has the patterns of the first."""
    written, asked = [], []
    emit, layout = chain.emit_chain, lacis.Causal.layout
    monkeypatch.setattr(chain, "emit_chain", lambda spec: written.append(spec) or emit(spec))
    monkeypatch.setattr(lacis.Causal, "layout", lambda *given: asked.append(given[3]) or layout(*given))
    monkeypatch.setattr(fused, "_KNOWN", {})
    for keys in (33, 35, 37, 35, 33):
        lacis.attention(*operands(1, keys), lacis.LastQueries(lacis.Causal(block=16)))
    assert len(written) == 1 and asked == [33, 35, 37]


PARTS = [(name, queries, group) for name in ("Local", "by head") for queries in (1, 16) for group in (1, 4)]


@pytest.mark.long
@pytest.mark.parametrize("name, queries, group", PARTS)
def test_by_the_steps_of_gpus(kernels, monkeypatch, name, queries, group):  # noqa: F811
    """Few queries on parts of the keys, for groups of heads too."""
    processors = types.SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: processors)
    rule, keys = copy.copy(RULES[name]), 340
    rule.block, rule.window = 64, 80
    q = torch.randn(2, HEADS, queries, 64).bfloat16()
    k, v = torch.randn(2, 2, HEADS // group, keys, 64).bfloat16()
    found = lacis.attention(q, k, v, lacis.LastQueries(rule)).double()
    q, k, v = q.double(), *(x.repeat_interleave(group, 1).double() for x in (k, v))
    scores = (q @ k.transpose(2, 3) / 8).masked_fill(~entries(rule, queries, keys), -math.inf)
    expected = scores.softmax(-1) @ v
    assert (found - expected).norm() < 2**-7 * expected.norm()
    assert all("lacis.mma" in kernel.asm["tiles"] for kernel in kernels) and kernels


@pytest.mark.parametrize("target", ["eager", pytest.param("auto", marks=pytest.mark.long)])
def test_training_after_inference_mode(target):
    """What was made for a shape in inference mode serves calls that record gradients."""
    rule, (q, k, v) = lacis.LastQueries(lacis.Local(11, causal=True, block=8)), operands(3)
    with torch.inference_mode():
        expected = lacis.attention(q, k, v, rule, target=target)
    q.requires_grad_()
    found = lacis.attention(q, k, v, rule, target=target)
    found.sum().backward()
    torch.testing.assert_close(found.detach(), expected.clone())
    assert q.grad.isfinite().all()


def test_what_it_refuses():
    with pytest.raises(lacis.DataError, match="LastQueries: TopKBlocks.* goes by where a query and a key stand"):
        lacis.LastQueries(lacis.TopKBlocks(2))
    with pytest.raises(lacis.DataError, match="LastQueries: 9 queries are not the last of 5"):
        lacis.attention(*operands(9, 5), lacis.LastQueries(lacis.Causal))

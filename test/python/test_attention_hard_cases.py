# SPDX-License-Identifier: Apache-2.0
"""Attention where numbers, strides and lengths are unusual, by statements and as one kernel."""

import pytest
import torch
from dense_attention import B, D, E, H, S, T, agree, dense, drawn, tensors
from strategies import mostly_long
from test_attention_modules import HEADS, WIDTH, kept, made

import lacis

WAYS = mostly_long(["eager", "auto"], "eager")


def pattern(mask, format=lacis.Csr):
    return lacis.Pattern.from_mask(mask, format)


@pytest.mark.parametrize("target", WAYS)
def test_strides_of_any_kind(target):
    """Expanded over batches and heads, turned, every second one, and rows that overlap."""
    memory = torch.randn(2000, dtype=torch.float64)
    q = memory[:D].expand(B, H, S, D) * 1.5
    shapes = {
        "expanded": (
            q,
            memory[: T * D].view(1, 1, T, D).expand(B, H, T, D),
            memory[: T * E].view(T, E).expand(B, H, T, E),
        ),
        "turned": tuple(x.transpose(1, 3).contiguous().transpose(1, 3) for x in tensors()),
        "every second": tuple(x.repeat_interleave(2, 3)[..., ::2] for x in tensors()),
        "overlapping": tuple(memory.as_strided((B, H, n, w), (31, 7, 2, 1)) for n, w in ((S, D), (T, D), (T, E))),
    }
    mask = drawn(S, T)
    for operands in shapes.values():
        found = lacis.attention(*operands, pattern(mask), return_lse=True, target=target)
        agree(found, dense(*operands, mask))


@pytest.mark.parametrize("target", WAYS)
def test_a_maximum_in_the_last_block(target):
    """Where sums so far are nothing beside what comes."""
    q, k, v = tensors()
    k[:, :, -1] = 200 * q.mean(2)
    mask = torch.ones(S, T, dtype=torch.bool)
    for format in (lacis.Csr, lacis.Bsr(4, 4)):
        found = lacis.attention(q, k, v, pattern(mask, format), return_lse=True, target=target)
        agree(found, dense(q, k, v, mask))


@pytest.mark.parametrize("target", WAYS)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("place", ["q", "k", "v", "score"])
def test_numbers_that_are_none_are_what_they_are_in_dense_attention(place, bad, target):
    operands, mask, here = tensors(), torch.ones(S, T, dtype=torch.bool), torch.zeros(S, T, dtype=torch.bool)
    if place == "score":
        here[2, 3] = True
    else:
        operands["qkv".index(place)][0, 0, 2, 0] = bad
    score = lambda s, b, h, i, j: torch.where(here[i, j], bad, s)
    found = lacis.attention(*operands, pattern(mask), score=score, target=target)
    agree([found], dense(*operands, mask, change=lambda s: torch.where(here, bad, s))[:1], equal_nan=True)


@pytest.mark.parametrize("target", WAYS)
def test_nothing_in_a_head_of_a_batch(target):
    """A layout for each batch, of which one has no block."""
    layout = drawn(B, 1, 3, 3)
    layout[0] = False
    mask = layout.repeat_interleave(4, 2).repeat_interleave(4, 3)[..., :10]
    operands = [x.requires_grad_() for x in tensors(2, q=12, k=10)]
    found = lacis.attention(*operands, layout, return_lse=True, target=target)
    agree(found, dense(*operands, mask))
    assert not torch.autograd.grad(found[0].sum(), operands[0])[0][0].any()


@pytest.mark.parametrize("target", WAYS)
def test_no_keys_beside_a_sink(target):
    """The log of the sum is the sink, and its gradient counts rows."""
    sink = torch.arange(H, dtype=torch.float64).requires_grad_()
    every = pattern(torch.ones(S, 0, dtype=torch.bool))
    found, lse = lacis.attention(*tensors(k=0), every, sink=sink, return_lse=True, target=target)
    assert torch.equal(lse, sink[None, :, None].expand(B, H, S)) and not found.any()
    assert torch.autograd.grad(lse.sum(), sink)[0].tolist() == [B * S] * H


@pytest.mark.parametrize("target", WAYS)
def test_numbers_that_are_none_stay_in_their_rows(target):
    """NaN in a query reaches its row, in a key and a value those that see it; -infinity is no share."""
    mask = drawn(S, T)
    for place, bad in [(0, torch.nan), (1, torch.nan), (1, torch.inf), (2, torch.nan), (2, torch.inf)]:
        operands = tensors()
        operands[place][0, 0, 2, 0] = bad
        found = lacis.attention(*operands, pattern(mask), return_lse=True, target=target)
        expected = dense(*operands, mask)
        clean = dense(*tensors(), mask)[0]
        if place == 2:  # where a row does not see the key, torch multiplies it by 0
            unseen = ~mask[:, 2]
            torch.testing.assert_close(found[0][0, 0, unseen], clean[0, 0, unseen])
            assert not found[0][0, 0, ~unseen, 0].isfinite().any()
            found, expected = (found[0][:, 1:], found[1]), (expected[0][:, 1:], expected[1])
        if bad == torch.inf:  # an infinite score has a log of sums that is infinite to torch, and NaN here
            expected = expected[0], torch.where(expected[1] == torch.inf, torch.nan, expected[1])
        agree(found, expected, rtol=1e-7, atol=1e-7, equal_nan=True)
    cut = lambda s, b, h, i, j: torch.where(j == 2, -torch.inf, s)
    without = mask.clone()
    without[:, 2] = False
    found = lacis.attention(*tensors(), pattern(mask), score=cut, return_lse=True, target=target)
    agree(found, dense(*tensors(), without))


@pytest.mark.parametrize("target", WAYS)
def test_an_entry_that_is_there_twice_weighs_twice(target):
    axes = torch.tensor([[0, 0, 0, 3], [1, 1, 4, 2]])
    twice = lacis.pack(torch.sparse_coo_tensor(axes, torch.ones(4), (S, T)), lacis.Coo).pattern
    counts = torch.zeros(S, T).index_put(tuple(axes), torch.ones(4), accumulate=True)
    assert twice.nnz == 4
    found = lacis.attention(*tensors(), twice, return_lse=True, target=target)
    agree(found, dense(*tensors(), counts > 0, change=lambda s: s + counts.clamp(min=1).log()))


@pytest.mark.parametrize("target", WAYS)
@pytest.mark.parametrize("q, k", mostly_long([(1, 1), (1, 63), (63, 65), (65, 64), (64, 1)], (63, 65)))
def test_lengths_beside_those_of_blocks(target, q, k):
    operands = [x.requires_grad_() for x in tensors(2, q=q, k=k)]
    layout = torch.ones(1, -(-q // 16), -(-k // 16), dtype=torch.bool)
    layout[0, 0, 1:] = False
    mask = layout[0].repeat_interleave(16, 0).repeat_interleave(16, 1)[:q, :k]
    blocks = lacis.Given(layout)
    blocks.block = 16
    found = lacis.attention(*operands, blocks, return_lse=True, target=target)
    expected = dense(*operands, mask)
    agree(found, expected)
    agree(*(torch.autograd.grad(output.square().sum(), operands) for output, _ in (found, expected)))


@pytest.mark.parametrize("target", WAYS)
@pytest.mark.parametrize("causal", [False, True])
def test_sequences_of_no_and_of_one_token(target, causal):
    """Queries without keys leave the sink alone, keys without queries have gradient 0."""
    starts, starts_k = torch.tensor([0, 0, 1, 4, 7, 7, S]), torch.tensor([0, 1, 2, 2, 8, 9, T])
    operands = [x[:1].clone().requires_grad_() for x in tensors()]
    sink, mask = torch.linspace(-1, 1, H).double().requires_grad_(), torch.zeros(S, T, dtype=torch.bool)
    for rows, columns in zip(zip(starts, starts[1:]), zip(starts_k, starts_k[1:])):
        block = mask[slice(*rows), slice(*columns)]
        mask[slice(*rows), slice(*columns)] = torch.ones_like(block).tril() if causal else True
    assert not mask[1:4].any() and not mask[:, 0].any() and mask[0].sum() == 1
    how = {"cu_seqlens": starts.int(), "cu_seqlens_k": starts_k, "causal": causal, "return_lse": True}
    for given in ({}, {"sink": sink}):
        leaves = [*operands, *given.values()]
        found = lacis.attention(*operands, pattern(torch.ones(S, T).bool()), target=target, **how, **given)
        expected = dense(*operands, mask, **given)
        agree(found, expected)
        agree(*(torch.autograd.grad(output.square().sum(), leaves) for output, _ in (found, expected)))
    assert torch.equal(found[1][0, :, 1], sink)


def test_no_pattern_of_other_lengths():
    with pytest.raises(lacis.DataError, match=r"the pattern is \[9, 10\]; for q"):
        lacis.attention(*tensors(), pattern(drawn(S, T - 1)))


@pytest.mark.long
def test_a_vision_transformer():
    """A class token and 16 patches: at full density the model, at less that with a mask."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "intermediate_size": 24}
    config = transformers.ViTConfig(**sizes, image_size=16, patch_size=4)
    model, images = made(lambda: transformers.ViTModel(config)), torch.randn(2, 3, 16, 16)
    expected = model(images).last_hidden_state
    rule = lacis.Local(3)
    for each, wanted in [(lacis.Given(torch.ones(1, 3, 3, dtype=torch.bool)), expected), (rule, None)]:
        s = lacis.create_schedule(model, target="eager")
        s.match(r".*layers?\.\d+\.attention(\.attention)?").sparsify(each).block(8, 8).set_format(lacis.Bsr)
        s.build(images)
        found = model(images).last_hidden_state
        s.restore()
        if wanted is not None:
            torch.testing.assert_close(found, wanted)
    mask, inner = kept(rule, 64, 17), torch.nn.functional.scaled_dot_product_attention
    with pytest.MonkeyPatch.context() as patch:
        masked = lambda *given, attn_mask=None, **options: inner(*given, attn_mask=mask, **options)
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", masked)
        torch.testing.assert_close(found, model(images).last_hidden_state)

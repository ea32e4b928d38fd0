# SPDX-License-Identifier: Apache-2.0
"""Attention on a pattern, against dense attention with masks in float64."""

import math

import pytest
import torch
from dense_attention import B, E, H, S, T, agree, dense, drawn, grid, tensors
from test_sampled import FORMATS
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import lacis


@pytest.mark.parametrize("name", FORMATS)
def test_any_format(name):
    kept, operands = drawn(S, T), tensors()
    pattern = lacis.Pattern.from_mask(kept, FORMATS[name])
    found = lacis.attention(*operands, pattern, return_lse=True, target="eager")
    agree(found, dense(*operands, kept))


@pytest.mark.parametrize("shape", [(H, S, T), (B, H, S, T)])
@pytest.mark.parametrize("heads", [1, 2, H])
def test_patterns_of_heads_and_batches_with_groups(shape, heads):
    kept = drawn(*shape)
    pattern = lacis.Pattern.from_mask(kept, lacis.Csf(len(shape)))
    operands = tensors(heads)
    agree(lacis.attention(*operands, pattern, return_lse=True, target="eager"), dense(*operands, kept))
    alone = [x[:1] for x in operands]
    pattern = lacis.Pattern.from_mask(kept if kept.ndim == 3 else kept[:1], lacis.Csf(len(shape)))
    found = lacis.attention(*alone, pattern, return_lse=True, target="eager")
    agree(found, dense(*alone, kept if kept.ndim == 3 else kept[:1]))


@pytest.mark.parametrize("dtype, rtol", [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)])
def test_kernels_of_blocks(dtype, rtol):
    """On the CPU's kernels, with gradients and strided operands."""
    kept = drawn(3, 3, density=0.5).repeat_interleave(4, 0).repeat_interleave(4, 1)[:S, :T]
    pattern = lacis.Pattern.from_mask(kept, lacis.Bsr(4, 4))
    operands = [x.transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in tensors(2, dtype=dtype)]
    copies = [x.detach().double().requires_grad_() for x in operands]
    found = lacis.attention(*operands, pattern, return_lse=True)
    expected = dense(*copies, kept)
    assert found[0].dtype == dtype and found[1].dtype == torch.float32
    agree(found, expected, rtol=rtol, atol=rtol)
    sound = lambda output, lse: output.double().sum() + torch.where(lse.isinf(), 0, lse).double().sum()
    mine, theirs = torch.autograd.grad(sound(*found), operands), torch.autograd.grad(sound(*expected), copies)
    agree(mine, theirs, rtol=rtol, atol=2 * rtol)
    again = lacis.attention(*operands, pattern)
    assert torch.equal(again, found[0])


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_kernels_of_any_format(name):
    """Forward and backward, shared by heads or not."""
    for kept in (drawn(S, T), drawn(H, S, T)):
        format = FORMATS[name] if kept.ndim == 2 else FORMATS[name].under("h")
        pattern = lacis.Pattern.from_mask(kept, format)
        operands = [x.requires_grad_() for x in tensors(2)]
        for target in ("cpu", "eager"):
            found = lacis.attention(*operands, pattern, causal=True, return_lse=True, target=target)
            expected = dense(*operands, kept & torch.ones(S, T).tril().bool())
            agree(found, expected)
            gradients = [torch.autograd.grad(output.square().sum(), operands) for output, _ in (found, expected)]
            agree(*gradients)


def test_functions_of_flex_attention():
    """Captured tensors are read entry by entry, in the way that they are written for scalars."""
    operands, pattern = tensors(), lacis.Pattern.from_mask(torch.ones(S, T, dtype=torch.bool), lacis.Csr)
    b, h, i, j = grid()
    slopes, table = torch.rand(H, dtype=torch.float64), torch.rand(H, S + T, dtype=torch.float64)
    lengths = torch.tensor([4, T])
    cap = lambda s: 2 * torch.tanh(s / 2)
    cases = [
        (lambda s, b, h, i, j: s + slopes[h] * (i - j), lambda s: s + slopes[h] * (i - j)),
        (lambda s, b, h, i, j: s + table[h][i - j + T], lambda s: s + table[h, i - j + T]),
        (lambda s, b, h, i, j: 2 * torch.tanh(s / 2), cap),
        (lambda s, b, h, i, j: torch.where(j <= i, s, -float("inf")), lambda s: torch.where(j <= i, s, -math.inf)),
    ]
    for score, change in cases:
        found = lacis.attention(*operands, pattern, score=score, return_lse=True, target="eager")
        agree(found, dense(*operands, torch.ones(S, T, dtype=torch.bool), change=change))
    mask = lambda b, h, i, j: (j < lengths[b]) & ((i + j) % 2 == h % 2)
    kept = (j < lengths[b]) & ((i + j) % 2 == h % 2)
    agree(lacis.attention(*operands, pattern, mask=mask, return_lse=True, target="eager"), dense(*operands, kept))


def test_masks_bias_and_sink_together():
    kept, operands = drawn(S, T, density=0.8), tensors()
    pattern = lacis.Pattern.from_mask(kept, lacis.Csr)
    b, h, i, j = grid()
    bias, sink = torch.randn(H, S, T, dtype=torch.float64), torch.randn(H, dtype=torch.float64)
    padding = torch.arange(T) < torch.tensor([[T], [6]])
    found = lacis.attention(
        *operands,
        pattern,
        score=lambda s, b, h, i, j: s * 2,
        bias=bias,
        sink=sink,
        scale=0.3,
        causal=True,
        window=(4, 2),
        key_padding=padding,
        mask=lambda b, h, i, j: i != 5,
        return_lse=True,
        target="eager",
    )
    every = kept & (j <= i) & (i - j <= 4) & padding[:, None, None] & (i != 5)
    agree(found, dense(*operands, every, 0.3, lambda s: s * 2 + bias, sink))
    assert bool((found[0][:, :, 5] == 0).all()) and torch.equal(found[1][0, :, 5], sink)
    added = torch.where(padding, 0.0, -10000.0).double()
    found = lacis.attention(*operands, pattern, key_padding=added, return_lse=True, target="eager")
    agree(found, dense(*operands, kept, change=lambda s: s + added[:, None, None]))


def test_no_keys_leave_the_sink():
    pattern = lacis.Pattern.from_mask(torch.zeros(S, T, dtype=torch.bool), lacis.Csr)
    sink = torch.arange(H, dtype=torch.float64)
    output, lse = lacis.attention(*tensors(), pattern, sink=sink, return_lse=True, target="eager")
    assert not output.any() and torch.equal(lse, sink[None, :, None].expand(B, H, S))


def test_rows_without_entries():
    operands = [x.requires_grad_() for x in tensors()]
    pattern = lacis.Pattern.from_mask(drawn(S, T), lacis.Csr)
    masked = lambda b, h, i, j: i != 3
    output, lse = lacis.attention(*operands, pattern, mask=masked, return_lse=True, target="eager")
    for row in (1, 3):
        assert not output[:, :, row].any() and bool(lse[:, :, row].isneginf().all())
    (output.sum() + lse.sum()).backward()
    assert not operands[0].grad[:, :, [1, 3]].any() and all(bool(x.grad.isfinite().all()) for x in operands)
    nan = lacis.attention(*operands, pattern, mask=masked, empty="nan", target="eager")
    assert bool(nan[:, :, [1, 3]].isnan().all()) and bool(nan[:, :, [0, 2]].isfinite().all())


def test_large_scores_of_half_types():
    """Scores of 1e5 do not fit into float16, their softmax does."""
    q, k, v = tensors(dtype=torch.float16)
    pattern = lacis.Pattern.from_mask(torch.ones(S, T, dtype=torch.bool), lacis.Csr)
    found = lacis.attention(300 * q, 300 * k, v, pattern, target="eager")
    agree([found], dense(300 * q, 300 * k, v, torch.ones(S, T, dtype=torch.bool)), rtol=2e-3, atol=2e-3)


def test_gradients():
    """Of q, k, v, bias, sink and a captured tensor, through the output and the log of the sums; twice too."""
    generator = torch.Generator().manual_seed(5)
    make = lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
    kept = drawn(3, 4, density=0.7)
    pattern = lacis.Pattern.from_mask(kept, lacis.Csr)

    def compute(q, k, v, bias, sink, slopes):
        output, lse = lacis.attention(
            *(q, k, v, pattern),
            score=lambda s, b, h, i, j: torch.tanh(s) * slopes[h],
            bias=bias,
            sink=sink,
            mask=lambda b, h, i, j: j != 0,
            return_lse=True,
            target="eager",
        )
        return output, torch.where(lse.isinf(), 0, lse)

    given = [make(1, 2, 3, 2), make(1, 1, 4, 2), make(1, 1, 4, 2), make(3, 4), make(2), make(2)]
    assert torch.autograd.gradcheck(compute, given)
    assert torch.autograd.gradgradcheck(compute, given)


def test_sequences_side_by_side():
    starts, starts_k = torch.tensor([0, 3, 3, 4, 8], dtype=torch.int32), torch.tensor([0, 5, 6, 7, 10])
    operands = [x[:1] for x in tensors()]
    pattern = lacis.Pattern.from_mask(torch.ones(S, T, dtype=torch.bool), lacis.Csr)
    kept = torch.zeros(S, T, dtype=torch.bool)
    for n in range(4):
        rows, columns = slice(starts[n], starts[n + 1]), slice(starts_k[n], starts_k[n + 1])
        block = kept[rows, columns]
        band = torch.ones_like(block).tril().triu(-1)
        kept[rows, columns] = band
    how = {"cu_seqlens": starts, "cu_seqlens_k": starts_k, "causal": True, "window": 1}
    found = lacis.attention(*operands, pattern, return_lse=True, target="eager", **how)
    agree(found, dense(*operands, kept))


def test_dropout_is_a_function_of_seed_and_place():
    pattern = lacis.Pattern.from_mask(torch.ones(S, T, dtype=torch.bool), lacis.Csr)
    q, k, _ = tensors()
    v = torch.eye(T, dtype=torch.float64).expand(B, H, T, T)  # the output is the shares
    shares = lacis.attention(q, k, v, pattern, target="eager")
    dropped = lacis.attention(q, k, v, pattern, dropout=0.25, seed=7, target="eager")
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], shares[kept] / 0.75)
    assert abs(kept.double().mean() - 0.75) < 4 * math.sqrt(0.25 * 0.75 / kept.numel())
    others = lacis.Pattern.from_mask(torch.ones(S, T, dtype=torch.bool), lacis.Bsr(4, 4))
    same = lacis.attention(q, k, v, others, dropout=0.25, seed=torch.tensor(7), target="eager")
    torch.testing.assert_close(same, dropped)
    assert not torch.equal(lacis.attention(q, k, v, others, dropout=0.25, seed=8, target="eager"), dropped)
    torch.manual_seed(0)
    first = lacis.attention(q, k, v, pattern, dropout=0.5, target="eager")
    assert not torch.equal(first, lacis.attention(q, k, v, pattern, dropout=0.5, target="eager"))
    torch.manual_seed(0)
    assert torch.equal(first, lacis.attention(q, k, v, pattern, dropout=0.5, target="eager"))


@pytest.mark.parametrize("dims", [(H,), (1,), (B, H)])
def test_layouts_of_blocks(dims):
    layout = drawn(*dims, 3, 3)
    operands = tensors(q=12, k=10)
    kept = layout.repeat_interleave(4, -2).repeat_interleave(4, -1)[..., :10]
    found = lacis.attention(*operands, layout, return_lse=True, target="eager")
    agree(found, dense(*operands, kept))


def test_lists_of_blocks():
    """-1 in the middle, and what is there twice."""
    lists = torch.tensor([[2, -1, 0], [1, 1, -1], [-1, -1, -1]], dtype=torch.int32)
    lists = lists.expand(1, 2, 3, 3)
    kept = torch.tensor([[1, 0, 1], [0, 1, 0], [0, 0, 0]]).bool().repeat_interleave(4, 0).repeat_interleave(4, 1)
    operands = tensors(2, q=12, k=10)
    agree(lacis.attention(*operands, lists, return_lse=True, target="eager"), dense(*operands, kept[:, :10]))
    with pytest.raises(lacis.DataError, match="blocks of keys from 0 to 2"):
        lacis.attention(*operands, torch.full((1, 1, 3, 1), 3, dtype=torch.int32))


@pytest.mark.parametrize("q, k, batch", [(0, 4, 1), (4, 0, 1), (4, 4, 0)])
def test_nothing_to_attend_to(q, k, batch):
    operands = [x.requires_grad_() for x in tensors(q=q, k=k, batch=batch)]
    csr = lacis.Pattern.from_mask(torch.ones(q, k, dtype=torch.bool), lacis.Csr)
    for pattern in (csr, lacis.Local(1, block=4), lacis.TopKBlocks(2, block=4)):
        output, lse = lacis.attention(*operands, pattern, causal=True, return_lse=True, target="eager")
        assert output.shape == (batch, H, q, E) and not output.any()
        assert lse.shape == (batch, H, q) and (k or bool(lse.isneginf().all()))
        output.sum().backward()
        assert not any(x.grad.any() for x in operands[:2])


def test_block_masks_of_flex_attention():
    mask = lambda b, h, i, j: (j <= i) & ((h > 0) | (b == 0) | (i < 100))
    blocks = create_block_mask(mask, B, H, 200, 256, device="cpu", BLOCK_SIZE=64)
    operands = tensors(q=200, k=256)
    kept = mask(*grid(200, 256))
    agree(lacis.attention(*operands, blocks, return_lse=True, target="eager"), dense(*operands, kept))


def test_a_row_that_flex_attention_masks_whole():
    """Beside full and partial blocks: its output is 0 and its log of the sum -infinity."""
    blocks = create_block_mask(lambda b, h, i, j: j < i, B, H, 200, 256, device="cpu", BLOCK_SIZE=64)
    assert blocks.full_kv_num_blocks.any() and blocks.kv_num_blocks.any()
    operands = tensors(q=200, k=256, dtype=torch.float32)
    found = lacis.attention(*operands, blocks, return_lse=True, target="eager")
    agree(found, flex_attention(*operands, block_mask=blocks, return_lse=True))
    assert not found[0][:, :, 0].any() and found[1][:, :, 0].isneginf().all()


@pytest.mark.parametrize("mask_mode", ["mul", "add"])
@pytest.mark.parametrize("padding_mode", ["mul", "add"])
def test_the_order_of_deepspeed(padding_mode, mask_mode):
    """Its softmax scales, adds positions, then padding of keys, then a mask: these two as a factor or a term."""
    kept, operands = drawn(S, T, density=0.8), tensors()
    positions, masked = torch.randn(H, S, T, dtype=torch.float64), drawn(S, T, density=0.7, seed=4)
    padding = torch.arange(T) < torch.tensor([[T], [6]])
    given, change, every = {"bias": positions}, lambda s: s + positions, kept
    if padding_mode == "mul":
        given["key_padding"], every = padding, every & padding[:, None, None]
    else:
        given["key_padding"] = added = torch.where(padding, 0.0, -3.0).double()
        change = lambda s: s + positions + added[:, None, None]
    if mask_mode == "mul":
        given["mask"], every = lambda b, h, i, j: masked[i, j], every & masked
    else:
        terms, before = torch.where(masked, 0.0, -2.0).double(), change
        given["bias"], change = positions + terms, lambda s: before(s) + terms
    pattern = lacis.Pattern.from_mask(kept, lacis.Csr)
    found = lacis.attention(*operands, pattern, scale=0.3, return_lse=True, target="eager", **given)
    agree(found, dense(*operands, every, 0.3, change))


def test_parts_merge_into_the_whole():
    operands = tensors()
    left, right = drawn(S, T), None
    right = ~left & drawn(S, T, seed=9)
    parts = []
    for kept in (left, right, torch.zeros_like(left)):
        pattern = lacis.Pattern.from_mask(kept, lacis.Csr)
        parts.append(lacis.attention(*operands, pattern, return_lse=True, target="eager"))
    agree(lacis.merge_attention(parts), dense(*operands, left | right))
    parts[2] = (parts[2][0] * math.nan, parts[2][1])
    agree(lacis.merge_attention(parts), dense(*operands, left | right))
    with pytest.raises(lacis.DataError, match="part 1 has an output"):
        lacis.merge_attention([parts[0], (parts[1][0][..., :1], parts[1][1])])


def test_autocast_takes_its_dtype():
    pattern = lacis.Pattern.from_mask(drawn(S, T), lacis.Csr)
    operands = tensors(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = lacis.attention(*operands, pattern, target="eager")
    halves = [x.bfloat16() for x in operands]
    assert torch.equal(found, lacis.attention(*halves, pattern, target="eager"))

# SPDX-License-Identifier: Apache-2.0
"""What attention takes as a pattern, as a BlockMask: flex_attention and lacis.attention compute the same with it."""

import pytest
import torch
from dense_attention import B, H, tensors
from strategies import mostly_long
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import lacis

SQ, SK = 50, 70
BY_HEAD = "(h, i, j) -> (h : dense, i : dense, j : compressed)"
BY_BATCH = "(b, h, i, j) -> (b : dense, h : dense, i : dense, j : compressed)"
RANDOM = {"different_layout_per_head": True, "num_random_blocks": 1}


def drawn(*shape):
    return torch.rand(*shape) < 0.3


def of_format(*shape, format=lacis.Csr):
    return lambda: lacis.Pattern.from_mask(drawn(*shape, SQ, SK), format)


def blocks():
    """Blocks of 8 by 16 of one head."""
    mask = drawn(7, 5).repeat_interleave(8, 0).repeat_interleave(16, 1)[:SQ, :SK]
    return lacis.Pattern.from_mask(mask, lacis.Bsr(8, 16))


def lists():
    return torch.randint(-1, 5, (B, H, 4, 3), dtype=torch.int32)


PATTERNS = {  # what makes it, and how many batches and heads the mask tells apart
    "rule": (lambda: lacis.Causal(block=16), 1, 1),
    "window": (lambda: lacis.Local(9, block=8), 1, 1),
    "class": (lambda: lacis.Causal, 1, 1),
    "by head": (lambda: lacis.BigBird(block=16, **RANDOM), B, H),
    "documents": (lambda: lacis.Documents([30, 40], block=16), 1, 1),
    "entries": (of_format(), 1, 1),
    "blocks": (blocks, 1, 1),
    "entries by head": (of_format(H, format=BY_HEAD), 1, H),
    "entries by batch": (of_format(B, H, format=BY_BATCH), B, H),
    "sum": (of_format(format=lacis.Hyb(1, 1)), 1, 1),
    "layout": (lambda: drawn(1, 5, 7), 1, 1),
    "layout by batch": (lambda: drawn(B, H, 5, 7), B, H),
    "lists": (lists, B, H),
    "chosen by the data": (lambda: lacis.TopKBlocks(2, block=10), B, H),
    "a block mask": (lambda: create_block_mask(lambda b, h, i, j: i % 3 > h - j, None, H, SQ, SK, "cpu", 16), B, H),
    "nothing": (lambda: torch.zeros(1, 5, 7, dtype=torch.bool), 1, 1),
}


@pytest.mark.parametrize("block", mostly_long([16, 128, ((10, 35),)], 16))
@pytest.mark.parametrize("name", PATTERNS)
def test_flex_attention_has_the_numbers_of_attention(name, block):
    torch.manual_seed(0)
    make, batch, heads = PATTERNS[name]
    q, k, v = tensors(q=SQ, k=SK)
    pattern = make()
    expected = lacis.attention(q, k, v, pattern, target="eager")
    made = lacis.block_mask(q, k, pattern, block=block)
    assert made.shape == (batch, heads, SQ, SK)
    assert made.BLOCK_SIZE == (block if isinstance(block, tuple) else (block, block))
    torch.testing.assert_close(flex_attention(q, k, v, block_mask=made), expected)
    torch.testing.assert_close(lacis.attention(q, k, v, made, target="eager"), expected)


def test_full_blocks_are_told_apart():
    q = torch.randn(1, 2, 64, 8)
    made = lacis.block_mask(q, q, lacis.Causal(block=16), block=16)
    assert made.full_kv_num_blocks.tolist() == [[[0, 1, 2, 3]]] and made.kv_num_blocks.tolist() == [[[1, 1, 1, 1]]]


def test_what_is_refused():
    q = torch.randn(1, 1, 4, 8)
    twice = lacis.pack(torch.sparse_coo_tensor([[0, 0, 3], [1, 1, 2]], torch.ones(3), (4, 4)), lacis.Coo)
    with pytest.raises(lacis.errors.DataError, match="block_mask: the pattern has an entry twice"):
        lacis.block_mask(q, q, twice)
    with pytest.raises(lacis.errors.DataError, match=r"the pattern is \[5, 4\]"):
        lacis.block_mask(q, q, lacis.Pattern.from_mask(torch.ones(5, 4) > 0, lacis.Csr))
    with pytest.raises(lacis.errors.DataError, match="a block is a positive number"):
        lacis.block_mask(q, q, lacis.Causal, block=0)
    with pytest.raises(lacis.errors.DataError, match="torch no mask of none"):
        lacis.block_mask(q[:0], q[:0], lacis.Causal)
    with pytest.raises(lacis.errors.DataError, match="do not fit"):
        lacis.block_mask(q, q[..., :4], lacis.Causal)

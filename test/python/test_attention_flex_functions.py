# SPDX-License-Identifier: Apache-2.0
"""The score and mask functions that flex_attention's documentation has, as they stand there: both compute the same."""

import pytest
import torch
from dense_attention import B, H, agree, tensors
from torch.nn.attention.flex_attention import and_masks, create_block_mask, flex_attention, or_masks

import lacis

LENGTH = 64
OFFSETS = torch.tensor([0, 20, 21, 50, LENGTH])
DOCUMENT = torch.repeat_interleave(torch.arange(4), OFFSETS.diff())


def alibi(score, b, h, q_idx, kv_idx):
    return score + (kv_idx - q_idx) * torch.exp2(-((h + 1) * 8.0 / H))


def checkerboard(score, batch, head, token_q, token_kv):
    score = torch.where(torch.abs(token_kv - token_q) % 2 == 1, score * 0.5, score)
    return torch.where(torch.abs(token_kv - token_q) % 2 == 0, score * 2.0, score)


def soft_cap(score, b, h, q_idx, kv_idx):
    return 2 * torch.tanh(score / 2)


def relative(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def documents(b, h, q_idx, kv_idx):
    same = DOCUMENT[q_idx] == DOCUMENT[kv_idx]
    return same & causal(b, h, q_idx - OFFSETS[DOCUMENT[q_idx]], kv_idx - OFFSETS[DOCUMENT[kv_idx]])


def natten(b, h, q_idx, kv_idx):
    """Pictures of 8 x 8, neighbourhoods of 5 x 3."""
    x, y = (q_idx // 8).clamp(2, 5), (q_idx % 8).clamp(1, 6)
    return ((x - kv_idx // 8).abs() <= 2) & ((y - kv_idx % 8).abs() <= 1)


FUNCTIONS = {
    "alibi": (alibi, None),
    "checkerboard": (checkerboard, None),
    "soft cap": (soft_cap, None),
    "relative": (relative, None),
    "causal": (None, causal),
    "window": (None, and_masks(causal, lambda b, h, q_idx, kv_idx: q_idx - kv_idx <= 9)),
    "prefix": (None, or_masks(causal, lambda b, h, q_idx, kv_idx: kv_idx < 7)),
    "documents": (None, documents),
    "natten": (None, natten),
    "dilated": (None, lambda b, h, q, k: ((q - k).abs() <= 12) & ((q - k) % 3 == 0)),
    "both": (alibi, causal),
}


@pytest.mark.parametrize("target", ["eager", pytest.param("auto", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_compute_the_same(name, target):
    """As `mask` of every block, and as what a BlockMask says."""
    score, mask = FUNCTIONS[name]
    operands = tensors(q=LENGTH, k=LENGTH, dtype=torch.float32)
    said = mask or (lambda b, h, q_idx, kv_idx: q_idx >= 0)
    blocks = create_block_mask(said, B, H, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=16)
    expected = flex_attention(*operands, score_mod=score, block_mask=blocks, return_lse=True)
    every = torch.ones(1, 4, 4, dtype=torch.bool)
    for pattern, own in ((blocks, None), (every, mask)):
        found = lacis.attention(*operands, pattern, score=score, mask=own, return_lse=True, target=target)
        agree(found, expected, rtol=1e-5, atol=1e-5)

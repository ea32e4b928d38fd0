# SPDX-License-Identifier: Apache-2.0
"""Attention on tensor cores of blocks of 8, 16 and 32 that differ by head, and of any lengths, against float64."""

import pytest
import torch
from test_attention_tails_cuda import biased, check, of_keys, padded

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)


def layout(heads, rows, columns, side, batch=()):
    """The first head has no blocks in the first 64 rows, the last one none in the first 64 columns."""
    torch.manual_seed(side)
    kept = torch.rand(*batch, heads, -(-rows // side), -(-columns // side), device="cuda") < 0.2
    kept[..., -1] |= torch.rand(kept.shape[:-1], device="cuda") < 0.5  # keys of the tail
    kept[..., 0, : 64 // side, :] = False
    kept[..., -1, :, : 64 // side] = False
    return kept


class Blocks(lacis.PatternRule):
    """A layout of blocks of a side, whose pattern is kept."""

    def __init__(self, side, kept):
        self.block, self.kept = side, kept

    def layout(self, heads, q, k, block):
        return self.kept


@pytest.mark.parametrize("lengths", [(512, 768), (1000, 1000), (332, 1004), (68, 40)])
@pytest.mark.parametrize("side, width", [(8, 64), (16, 64), (16, 128), (32, 64), (32, 128)])
@pytest.mark.parametrize("options", [{}, {"causal": True}], ids=["plain", "causal"])
def test_heads_of_their_own(side, width, lengths, options):
    """Grouped, too."""
    check(lengths, (4, 2), Blocks(side, layout(4, *lengths, side)), options, width=width)


@pytest.mark.parametrize("side", [16, 32])
def test_batches_of_their_own(side):
    check((200, 332), (4, 4), Blocks(side, layout(4, 200, 332, side, batch=(2,))), {})


@pytest.mark.parametrize("lengths", [(1000, 1000), (332, 1004), (100, 92)])
@pytest.mark.parametrize("side", [8, 16, 32])
@pytest.mark.parametrize("options", [{}, {"window": 100}], ids=["plain", "window"])
def test_heads_that_share(side, lengths, options):
    """Of lengths that end inside of a panel, or of a block."""
    check(lengths, (4, 2), Blocks(side, layout(2, *lengths, side)[-1:]), options)


@pytest.mark.parametrize("draw", [biased, padded, of_keys])
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("lengths", [(1000, 1000), (200, 332)])
def test_scores_that_read_tensors(draw, shared, lengths):
    options, tensors = draw(*lengths)
    kept = layout(4, *lengths, 16)
    check(lengths, (4, 4), Blocks(16, kept[-1:] if shared else kept), options, tensors)


def test_lists_of_blocks():
    """A list may be shorter than it has room, and lacks a head's first row."""
    lists = torch.rand(2, 4, 63, 63, device="cuda").topk(9).indices
    lists[:, 0, 2], lists[..., 3:5] = -1, -1
    check((1000, 1000), (4, 2), lists, {})

# SPDX-License-Identifier: Apache-2.0
"""Attention on stored blocks and its gradients, written by hand as tiles, are on a CPU what float64 gives."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bench import tile_attention, tile_attention_backward  # noqa: E402

FORMS = [(bench, form) for bench in (tile_attention, tile_attention_backward) for form in bench.FORMS]


@pytest.mark.parametrize("bench, form", FORMS, ids=lambda each: getattr(each, "file", ""))
def test_attention(bench, form):
    """With rows of blocks that are empty, full, and of one block; more workers than some heads have rows."""
    torch.manual_seed(0)
    bench.check(form, tokens=5 * form.block, heads=2, kept=0.4, device="cpu", target="cpu", repeats=1)


def test_lists_hand_out_each_row_once():
    lists = tile_attention.work_lists([3, 0, 9, 1, 200], heads=3, groups=2, processors=4)
    pairs = sorted(zip(lists["crd1"].tolist(), lists["crd2"].tolist()))
    assert pairs == [(row, head) for row in range(5) for head in range(3)]
    assert len(lists["pos1"]) == 9 and lists["pos1"][-1] == 15

# SPDX-License-Identifier: Apache-2.0
"""Strategies of `race` on CUDA: the same cases, and parts whose sum the lanes of a warp share."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import test_races  # noqa: E402

import lacis  # noqa: E402
from lacis import steps  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture(autouse=True)
def on_cuda(monkeypatch):
    monkeypatch.setattr(test_races, "DEVICE", "cuda")


def test_lanes_that_share_a_sum_add_it_once():
    a, w, x = test_races.problem()
    lanes = [*test_races.shares("atomic", factor=32), steps.Split("j", 32), steps.Bind("j1", "lane")]
    vector = x[0].contiguous()
    kernel = lacis.compile("ij,j->i", w, vector, steps=lanes, deterministic=False)
    torch.testing.assert_close(kernel(w, vector), a @ vector)


@pytest.mark.parametrize("unit, parts", [("lane", 32), ("warp", 8)])
def test_units_of_a_row_bring_its_sum_together(unit, parts):
    a, w, x = test_races.problem()
    own = [
        steps.SplitNnz("j", parts=parts),
        steps.Bind("j0", unit),
        steps.Bind("i", "block.x"),
        steps.Bind("b", "block.y"),
    ]
    kernel = lacis.compile("ij,bj->bi", w, x, steps=own)
    first = kernel(w, x)
    torch.testing.assert_close(first.double(), x.double() @ a.double().T, rtol=1e-5, atol=1e-5)
    assert all(torch.equal(first, kernel(w, x)) for _ in range(20))


def test_a_lane_takes_an_entry_of_the_fused_loop():
    a, w, x = test_races.problem()
    group = [steps.Fuse("i", "j"), steps.Split("i_j", 32), steps.Race("i_j1", "segment"), steps.Bind("i_j1", "lane")]
    kernel = lacis.compile("ij,j->i", w, x[0].contiguous(), steps=group)
    torch.testing.assert_close(kernel(w, x[0].contiguous()), a @ x[0])


COLUMNS = [steps.Split("b", 4), steps.Reorder("b0", "i", "b1")]
EIGHT = [
    *COLUMNS,
    steps.SplitNnz("i_j", 2),
    steps.Split("i_j0", 8),
    steps.Split("i_j00", 4),
    steps.Reorder("b0", "i_j000", "i_j001", "b1", "i_j01"),
    steps.Race("i_j01", "segment"),
    steps.Bind("i_j01", "lane"),
    steps.Race("i_j001", "order"),
    steps.Bind("i_j001", "lane"),
]


@pytest.mark.parametrize("columns", [steps.Jam("b1"), steps.Vectorize("b1", 4)], ids=lambda step: step.mnemonic)
@pytest.mark.parametrize("batch", [16, 13])
def test_eight_lanes_carry_the_segments_of_four_columns(columns, batch):
    a, w, x = test_races.problem()
    x = x[:batch].contiguous()
    kernel = lacis.compile("ij,bj->bi", w, x, steps=[*EIGHT, columns])
    first = kernel(w, x)
    torch.testing.assert_close(first.double(), x.double() @ a.double().T, rtol=1e-5, atol=1e-5)
    assert all(torch.equal(first, kernel(w, x)) for _ in range(20))


@pytest.mark.parametrize("entries", [1, 8])
def test_a_warp_carries_segments_of_long_and_short_rows(entries):
    torch.manual_seed(1)
    lengths = torch.tensor([0, 3000, 1, 2, 0, 0, 700, 5, 33, 257, 0]).repeat(40)
    a = torch.where(torch.arange(3000) < lengths[:, None], torch.randn(len(lengths), 3000), 0).cuda()
    w, x = lacis.pack(a, lacis.Csr), torch.randn(3000).cuda()
    warp = [steps.SplitNnz("i_j", entries), steps.Split("i_j0", 32), steps.Race("i_j01", "segment")]
    blocks = [steps.Split("i_j00", 4), steps.Race("i_j001", "order"), steps.Bind("i_j001", "warp")]
    kernel = lacis.compile("ij,j->i", w, x, steps=[*warp, steps.Bind("i_j01", "lane"), *blocks])
    first = kernel(w, x)
    torch.testing.assert_close(first.double(), a.double() @ x.double(), rtol=1e-5, atol=1e-3)
    assert all(torch.equal(first, kernel(w, x)) for _ in range(20))


from test_races import *  # noqa: E402, F403

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


from test_races import *  # noqa: E402, F403

# SPDX-License-Identifier: Apache-2.0
"""Attention on a GPU reads tensors that are not contiguous where they lie, by the copy engine and by warps."""

import pathlib
import sys

import poison
import pytest
import torch
from test_attention_dynamic_cuda import launches

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import test_attention_strides as strides  # noqa: E402
from test_attention_warps_cuda import by_warps  # noqa: E402, F401

import lacis  # noqa: E402

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="needs sm_90a")
RULE = lacis.Causal(block=64)


@pytest.fixture(params=["by the copy engine", "by warps"])
def way(request):
    if request.param == "by warps":
        request.getfixturevalue("by_warps")


@pytest.fixture(autouse=True)
def halves(monkeypatch):
    monkeypatch.setattr(
        torch, "randn", lambda *sizes, own=torch.randn: own(*sizes, device="cuda", dtype=torch.bfloat16)
    )


def made(make):
    return make(2, 4, 512, 64)


@pytest.mark.parametrize("make", [*strides.READ, *strides.COPIED])
def test_strides(make, way):
    with poison.allocations():
        assert all(map(torch.equal, *strides.both(made(make), RULE, made(strides.tokens_first)[0])))


@pytest.mark.parametrize("make", strides.READ)
def test_nothing_is_copied(make, way):
    given, slope = [x.requires_grad_() for x in made(make)], made(strides.tokens_first)[0]

    def run():
        out = lacis.attention(*given, RULE)
        torch.autograd.grad(out, given, slope)

    run()
    names = launches(run)
    assert len(names) >= 4 and not any("copy" in name for name in names), names

# SPDX-License-Identifier: Apache-2.0
"""Gradients of attention on stored blocks, written by hand as tiles: their oracle, and their machine code."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bench import tile_attention_backward as backward  # noqa: E402

from lacis import _core  # noqa: E402
from lacis.runtime import ptxas  # noqa: E402


def test_statistics_are_those_of_autograd():
    """The oracle itself, on a full pattern, beside torch's derivative of its own attention."""
    torch.manual_seed(0)
    q, k, v, dy = (torch.randn(2, 64, backward.HEAD, dtype=torch.float64) for _ in range(4))
    inputs = [x.requires_grad_() for x in (q, k, v)]
    y = torch.nn.functional.scaled_dot_product_attention(*inputs)
    full = torch.ones(2, 2, dtype=torch.bool)
    x, dq, others = backward.statistics(*(each.detach() for each in inputs), dy, full, 32)
    torch.testing.assert_close((dq, *others), torch.autograd.grad(y, inputs, dy))
    torch.testing.assert_close(x.delta, (dy * y).sum(2).detach().float())
    torch.testing.assert_close(x.lse, (q @ k.mT / backward.HEAD**0.5).logsumexp(2).detach().float())


@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("form", backward.FORMS, ids=lambda form: form.file)
def test_hopper_code_is_assembled(form):
    """No C75xx and no spill."""
    _core.compile(form.text, "cuda:sm_90a", {"ptxas": ptxas.find(), "check_ptxas": True})

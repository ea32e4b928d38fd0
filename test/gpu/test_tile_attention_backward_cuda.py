# SPDX-License-Identifier: Apache-2.0
"""Gradients of attention on stored blocks, by hand as tiles, on a Hopper GPU: right, and bit by bit the same."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bench import tile_attention_backward as backward  # noqa: E402
from bench.measure import _flush  # noqa: E402

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")


@pytest.mark.parametrize("form", backward.FORMS, ids=lambda form: form.file)
@pytest.mark.parametrize("tokens, heads", [(256, 1), (2048, 5)])
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 1.0])
def test_gradient(form, tokens, heads, kept):
    _flush()
    backward.check(form, tokens, heads, kept, repeats=20)

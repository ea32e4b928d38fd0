# SPDX-License-Identifier: Apache-2.0
"""Attention on stored blocks and its gradients, by hand as tiles, on a Hopper GPU: right, the same bits each time."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bench import tile_attention, tile_attention_backward  # noqa: E402
from bench.measure import _flush  # noqa: E402

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")


FORMS = [(bench, form) for bench in (tile_attention, tile_attention_backward) for form in bench.FORMS]


@pytest.mark.parametrize("bench, form", FORMS, ids=lambda each: getattr(each, "file", ""))
@pytest.mark.parametrize("tokens, heads", [(256, 1), (2048, 5)])
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 1.0])
def test_attention(bench, form, tokens, heads, kept):
    _flush()
    bench.check(form, tokens, heads, kept, repeats=20)

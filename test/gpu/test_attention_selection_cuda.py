# SPDX-License-Identifier: Apache-2.0
"""Blocks of keys that a model selects for itself, on a GPU."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import test_attention_selection as selection  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("each", [selection.test_native_sparse_attention, selection.test_video_sparse_attention])
def test_selections(each):
    with torch.device("cuda"):
        each("auto")

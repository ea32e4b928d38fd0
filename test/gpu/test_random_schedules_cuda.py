# SPDX-License-Identifier: Apache-2.0
"""Schedules drawn at random on CUDA, units of the GPU among their steps."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import conformance  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture(autouse=True)
def on_cuda(monkeypatch):
    monkeypatch.setattr(conformance, "DEVICE", "cuda")


from test_random_schedules import *  # noqa: E402, F403

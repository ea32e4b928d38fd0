# SPDX-License-Identifier: Apache-2.0
"""FSDP2 over gloo: two processes that share out the values train as one, and their checkpoint resumes on one."""

import os
import pathlib
import subprocess
import sys

import pytest
import sharded
import torch
from training import build


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="needs gloo")
def test_two_processes_share_the_values_out(tmp_path):
    command = [sys.executable, str(pathlib.Path(__file__).with_name("sharded.py")), str(tmp_path)]
    ranks = [subprocess.Popen([*command, str(rank)], env={**os.environ, "OMP_NUM_THREADS": "1"}) for rank in range(2)]
    assert [rank.wait(timeout=300) for rank in ranks] == [0, 0]
    model, _ = build("bsr", target="eager")
    optimizer = sharded.adamw(model)
    sharded.load(model, optimizer, tmp_path)
    for expected in torch.load(tmp_path / "expected.pt"):
        torch.testing.assert_close(sharded.step(model, optimizer, sharded.batch()), expected, rtol=1e-5, atol=1e-6)

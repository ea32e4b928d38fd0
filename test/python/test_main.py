# SPDX-License-Identifier: Apache-2.0
"""`python -m lacis` says what a bug report needs."""

import os
import subprocess
import sys

import lacis
import torch
from lacis import __main__, _core
from lacis.runtime import node, ptxas


def run(**env):
    command = [sys.executable, "-m", "lacis"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **env})
    return dict(line.strip().split(maxsplit=1) for line in done.stdout.splitlines())


def test_all_that_a_bug_report_needs(tmp_path):
    (tmp_path / "kernel").write_bytes(bytes(2**20))
    said = run(LACIS_CACHE_DIR=str(tmp_path), LACIS_DEBUG="1", LACIS_DEBGU="1")
    assert said["lacis"].startswith(lacis.__version__)
    assert _core.compiler_fingerprint() == f"{said['compiler']}-llvm-{said['LLVM']}"
    assert said["targets"].startswith("cpu (") and "cuda" in said["targets"]
    assert said["torch"].startswith(torch.__version__)
    found = node.find()
    assert said["autograd"].startswith("Python, for want of " if found is None else os.path.basename(found))
    assert said["cache"] == f"{tmp_path}, 1 files, 1.0 MiB"
    assert said["ptxas"].startswith(ptxas.find() or "none")
    assert any(name.startswith("GPU") for name in said)
    assert said["LACIS_DEBUG"] == "True" and said["LACIS_DEBGU"] == "is no variable that lacis reads"


def test_what_is_missing_is_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "lacis._core", None)
    monkeypatch.delattr(lacis, "_core", raising=False)
    monkeypatch.setenv("LACIS_CACHE_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("LACIS_PTXAS", "off")
    assert __main__.main() == 1
    said = capsys.readouterr().out
    assert "not loaded: " in said and "nowhere, none yet" in said and "none, the driver assembles kernels" in said

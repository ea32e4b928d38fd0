# SPDX-License-Identifier: Apache-2.0
"""Every dumped stage goes back in: through lacis-opt to the end, or into lacis-compile, it is the same kernel."""

import pathlib
import shutil
import subprocess
import sys

import conformance
import pytest
import torch
from strategies import mostly_long

import lacis
from lacis import _core
from lacis.capture import capture_einsum
from lacis.emit import emit

OPT = shutil.which("lacis-opt", path=pathlib.Path(sys.executable).parent) or shutil.which("lacis-opt")
pytestmark = pytest.mark.skipif(OPT is None, reason="lacis-opt is not built")
STAGES = ("lacis", "loops", "tiles", "buffers", "target")
END = {"cpu": "asm", "cuda:sm_90a": "ptx"}


def lower(path, target):
    family, _, chip = target.partition(":")
    flag = f"--lacis-to-target=target={family}" + (f" arch={chip}" if chip else "")
    return subprocess.run([OPT, path, flag], capture_output=True, text=True, check=True).stdout


def code(text):
    """Code without the lines that only name its source."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith((".loc", ".file", "//", "#", ".ident"))]


@pytest.mark.parametrize("target", END)
@pytest.mark.parametrize("format", mostly_long([lacis.Csc(), lacis.Bsr(16, 16)], lacis.Bsr(16, 16)), ids=str)
def test_every_stage(format, target, tmp_path):
    def end(text, **options):
        return code(_core.compile(text, target, {"stages": True, **options}).stages[END[target]])

    w = conformance.sparse((17, 23), 0.3, torch.float32, torch.Generator().manual_seed(0))
    spec, _ = capture_einsum("ij,bj->bi", [lacis.pack(w, format), torch.zeros(3, 23)], location=("train.py", 12))
    made = end(emit(spec), dump_dir=str(tmp_path))
    (llvm,) = tmp_path.glob("*.llvm.ll")
    assert end(llvm.read_text()) == made
    for stage in STAGES:
        (dumped,) = tmp_path.glob(f"*.{stage}.mlir")
        assert 'loc("train.py":12' in dumped.read_text(), stage
        assert end(dumped.read_text()) == made, stage
        assert end(lower(dumped, target)) == made, stage

# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over every family of kernels, each on one small problem: nothing to report."""

import os
import pathlib
import shutil
import subprocess
import sys

import attention_families
import families
import pytest
import torch

TOOL = shutil.which("compute-sanitizer")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.skipif(TOOL is None, reason="no compute-sanitizer"),
]
# What runs, what its kernels' names hold (torch's are not looked at), and what it prints.
PROGRAMS = {
    "products": (families, ("einsum", "forward_", "grad_input_", "grad_values_"), lambda tool: families.small()),
    "attention": (attention_families, attention_families.NAMES, attention_families.names),
}


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_to_report(program, tool):
    module, names, lines = PROGRAMS[program]
    chosen = [option for name in names for option in ("--kernel-name", f"kns={name}")]
    program = [sys.executable, str(pathlib.Path(module.__file__)), *([tool] if module is attention_families else [])]
    found = subprocess.run(
        [TOOL, "--tool", tool, "--error-exitcode", "9", *chosen, *program],
        env=os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},  # each tensor is an allocation, with bounds
        capture_output=True,
        text=True,
    )
    if "Device not supported" in found.stdout:
        pytest.skip("compute-sanitizer does not support this device")
    assert found.returncode == 0, found.stdout[-10000:] + found.stderr[-2000:]
    assert all(name in found.stdout.splitlines() for name in lines(tool))
    assert "SUMMARY: 0 " in found.stdout, found.stdout[-1000:]

# SPDX-License-Identifier: Apache-2.0
"""Kinds from outside, end to end: packed by their Python twins, multiplied by a kernel of the core they joined."""

import itertools
import os
import pathlib
import subprocess
import sys

import lacis
import pytest
import torch
from test_outside_level import TEXTS, Even, Mirrored

CORE = pathlib.Path(__file__).parents[2] / "build" / "outside" / "lib" / "liblacis_core.so"


def check(text):
    """Products in float32 of many shapes, densities and batches, against float64 dense."""
    assert Even.has_code and Mirrored.has_code
    generator = torch.Generator().manual_seed(0)
    cases = itertools.product(((17, 23), (1, 9), (33, 1), (4, 6), (0, 5)), (0.0, 0.2, 1.0), (0, 1, 5))
    for shape, density, batch in cases:
        w = torch.randn(shape, generator=generator) * (torch.rand(shape, generator=generator) < density)
        x = torch.randn(batch, shape[1], generator=generator)
        with torch.no_grad():
            y = lacis.einsum("ij,bj->bi", lacis.pack(w, text), x)
        error = (y.double() - x.double() @ w.double().T).abs()
        limit = x.double().abs() @ w.double().abs().T * torch.finfo(torch.float32).eps * (shape[1] + 2)
        assert y.shape == (batch, shape[0]) and bool((error <= limit).all()), (text, shape, density, batch)


def run(text, cache, preload):
    """`check` in a process that loads a core of choice."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    environment |= {"LACIS_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path), **preload}
    command = [sys.executable, __file__, text]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(not CORE.exists(), reason="build/outside/lib/liblacis_core.so is not built")
@pytest.mark.parametrize("text", TEXTS)
def test_a_kernel_of_kinds_from_outside(text, tmp_path):
    result = run(text, tmp_path, {"LD_PRELOAD": str(CORE)})
    assert result.returncode == 0, result.stderr


def test_the_core_alone_does_not_know_them(tmp_path):
    result = run(TEXTS[0], tmp_path, {})
    assert result.returncode != 0 and "unknown level kind 'even'" in result.stderr, result.stderr


if __name__ == "__main__":
    check(sys.argv[1])

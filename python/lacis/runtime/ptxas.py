# SPDX-License-Identifier: Apache-2.0
"""Finds NVIDIA's PTX assembler; without one the driver assembles."""

from __future__ import annotations

import functools
import glob
import importlib.util
import os
import shutil
import subprocess

from lacis import knobs
from lacis.runtime.log import LOG

_WHEELS = ("nvidia/cu*/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas", "triton/backends/nvidia/bin/ptxas")


def _package_roots() -> list[str]:
    roots = []
    for name in ("nvidia", "triton"):
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            roots.append(os.path.dirname(folder))
    return roots


def _candidates() -> list[str]:
    found = [shutil.which("ptxas"), "/usr/local/cuda/bin/ptxas"]
    for root in _package_roots():
        for pattern in _WHEELS:
            found += sorted(glob.glob(os.path.join(root, pattern)), reverse=True)
    return [path for path in found if path]


@functools.cache
def _default() -> str | None:
    return next((path for path in _candidates() if os.access(path, os.X_OK)), None)


def find() -> str | None:
    """The assembler to use: `LACIS_PTXAS`, the PATH, the CUDA toolkit, or a wheel that carries one.

    None leaves the work to the driver: where there is none, or where the one found does not run.
    """
    path = _default() if knobs.ptxas is None else knobs.ptxas
    return path if path and path != "off" and version(path) else None


@functools.cache
def version(path: str | None) -> str:
    """What tells two assemblers apart; empty without one, and for one that does not run, which the log tells."""
    if path is None:
        return ""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        return done.stdout.strip().splitlines()[-1]
    except (OSError, subprocess.CalledProcessError, IndexError) as error:
        LOG.warning("lacis: '%s' does not run, the driver assembles kernels: %s", path, error)
        return ""

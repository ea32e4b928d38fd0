# SPDX-License-Identifier: Apache-2.0
"""`python -m lacis`: what a bug report should say of versions, targets, the kernel cache, the assembler and GPUs.

`python -m lacis node` builds the node of autograd in C++ for the torch that is installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence

import torch

import lacis
from lacis import knobs


def main(arguments: Sequence[str] = ()) -> int:
    """Prints the table; 1 where the compiled half of Lacis cannot be loaded, which a row says. `node` builds that."""
    parser = argparse.ArgumentParser(prog="python -m lacis", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["node"], help="build the node of autograd for the installed torch")
    if parser.parse_args(arguments).what == "node":
        return _build_node()
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    found = rows()
    for name, text in found:
        table.add_row(name, text, end_section=False)
    Console(width=None if sys.stdout.isatty() else 200, highlight=False, markup=False).print(table)
    return int(any(text.startswith("not loaded") for name, text in found if name == "compiler"))


def rows() -> list[tuple[str, str]]:
    """Name and text of each line."""
    return [
        ("lacis", f"{lacis.__version__}, {os.path.dirname(os.path.abspath(lacis.__file__))}"),
        *_compiler(),
        ("autograd", _autograd()),
        ("torch", f"{torch.__version__}, CUDA {torch.version.cuda or 'none'}, {torch.get_num_threads()} threads"),
        ("python", f"{platform.python_version()}, {platform.platform()}"),
        ("cache", _cache(knobs.cache_dir)),
        ("ptxas", _ptxas()),
        *_gpus(),
        *_knobs(),
    ]


def _compiler() -> list[tuple[str, str]]:
    try:
        from lacis import _core

        version, llvm = _core.compiler_fingerprint().rsplit("-llvm-", 1)
        host = _core.host_cpu().partition(":")[0]
        targets = ", ".join(f"cpu ({host})" if target == "cpu" else target for target in _core.targets().split(","))
        return [("compiler", version), ("LLVM", llvm), ("targets", targets)]
    except ImportError as error:
        return [("compiler", f"not loaded: {error}")]


def _autograd() -> str:
    from lacis.runtime import node

    found = node.find()
    if found is None:
        return f"Python, for want of a node for torch {torch.__version__}: run python -m lacis node"
    return os.path.basename(found)


def _build_node() -> int:
    from lacis.runtime import node

    try:
        print(node.build())
    except lacis.Error as error:
        print(f"python -m lacis node: {error.message}", file=sys.stderr)
        return 1
    return 0


def _cache(folder: str) -> str:
    try:
        files = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]
        size = sum(os.path.getsize(file) for file in files)
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return f"{folder}, {len(files)} files, {size / 2**20:.1f} MiB" if os.path.isdir(folder) else f"{folder}, none yet"


def _ptxas() -> str:
    from lacis.runtime import ptxas

    path = ptxas.find()
    return f"{path}, {ptxas.version(path)}" if path else "none, the driver assembles kernels"


def _gpus() -> list[tuple[str, str]]:
    if not torch.cuda.is_available():
        return [("GPU", "none that torch can use")]
    found = []
    for n in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(n)
        memory = f"{device.total_memory / 2**30:.0f} GiB"
        found.append((f"GPU {n}", f"{device.name}, compute capability {device.major}.{device.minor}, {memory}"))
    return found


def _knobs() -> list[tuple[str, str]]:
    """What is set, and what looks like a variable of Lacis and is none."""
    given = [(knob.variable, str(getattr(knobs, name))) for name, knob in knobs.KNOBS.items() if knobs.is_given(name)]
    return given + [(name, "is no variable that lacis reads") for name in knobs.unknown_variables()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

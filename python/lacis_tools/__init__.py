# SPDX-License-Identifier: Apache-2.0
"""Starts the native tools of an installed wheel without importing torch."""

from __future__ import annotations

import importlib.util
import os
import sys


def find(name: str) -> str:
    """The path of a native tool."""
    spec = importlib.util.find_spec("lacis")
    for folder in spec.submodule_search_locations if spec else ():
        path = os.path.join(folder, "bin", name)
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(f"{name} is not part of this installation of lacis")


def main() -> None:
    """Becomes the tool whose name this command carries."""
    path = find(os.path.basename(sys.argv[0]))
    os.execv(path, [path, *sys.argv[1:]])

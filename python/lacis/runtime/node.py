# SPDX-License-Identifier: Apache-2.0
"""The library with a node of autograd for exactly this torch: where it is found, and how it is built where it is not.

It is the one of the installation, or one that `python -m lacis node` built from `node_source.cpp` beside this file, and
whose name says from what. That lies beside the package or, where nobody may write there, in the folder of kernels.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pathlib
import shutil
import subprocess
import tempfile

import torch

import lacis
from lacis import knobs
from lacis.errors import Error

from . import sealed
from .cache import INSIDE, CacheError, prepare

_LOG = logging.getLogger("lacis")
_SOURCE = pathlib.Path(__file__).with_name("node_source.cpp")
_FLAGS = ["-O3", "-DNDEBUG", "-std=c++20", "-fvisibility=hidden", "-fvisibility-inlines-hidden"]
_HEADER = "torch/csrc/autograd/custom_function.h"


def name() -> str:
    """That of the installation, see python/node/CMakeLists.txt."""
    return f"_node-{torch.__version__.split('+')[0]}.so"


def built_name() -> str:
    """That of one which was built from the present source for this torch."""
    return f"_node-{torch.__version__}-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}.so"


def find() -> str | None:
    """The path of the library for this torch; one that another user could have written is passed over, with a word."""
    for each in (name(), built_name()):
        for folder in lacis.__path__:
            if os.path.exists(path := os.path.join(folder, each)):
                return path
    for folder in (pathlib.Path(knobs.cache_dir), pathlib.Path(knobs.cache_dir) / INSIDE):
        path = folder / built_name()
        try:
            sealed.check_folder(folder)
            sealed.check_file(path)
            return str(path)
        except sealed.Distrusted as error:
            if path.exists():
                _LOG.warning("lacis: %s; autograd has no node in C++", error)
        except OSError:
            pass  # there is none
    return None


def build() -> str:
    """Compile it with the headers of the installed torch, in some 15 seconds; where it lies now, or lay before.

    Raises `Error` where there is no compiler, no ninja, or no headers, and with what the compiler says.
    """
    if (found := find()) is not None:
        return found
    from torch.utils import cpp_extension

    _require_tools(cpp_extension)
    with tempfile.TemporaryDirectory() as folder:
        try:
            cpp_extension.load(
                "lacis_node",
                [str(_SOURCE)],
                extra_cflags=_FLAGS,
                build_directory=folder,
                with_cuda=False,
                is_python_module=False,
            )
        except (ImportError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise Error(f"the node of autograd does not compile with torch {torch.__version__}: {error}") from error
        return _put(pathlib.Path(folder, "lacis_node.so").read_bytes())


def _require_tools(cpp_extension) -> None:
    """Raise `Error` where torch cannot build an extension."""
    compiler = cpp_extension.get_cxx_compiler()
    if shutil.which(compiler) is None:
        raise Error(
            f"there is no C++ compiler '{compiler}' on the PATH; install one (apt install g++), or name one by CXX"
        )
    if not cpp_extension.is_ninja_available():
        raise Error("torch builds its extensions with ninja, which is not on the PATH; pip install ninja")
    folders = cpp_extension.include_paths()
    if not any(os.path.exists(os.path.join(folder, _HEADER)) for folder in folders):
        raise Error(f"torch {torch.__version__} has no headers: '{_HEADER}' is in none of {folders}")


def _put(library: bytes) -> str:
    """Write it beside the package or, where that cannot be, into the folder of kernels; its path."""
    beside = pathlib.Path(lacis.__path__[0], built_name())
    try:
        sealed.write(beside, library, mode=0o644)
        return str(beside)
    except OSError:
        pass  # it belongs to somebody else
    try:
        path = prepare(pathlib.Path(knobs.cache_dir)) / built_name()
        sealed.write(path, library)
    except CacheError as error:
        raise Error(
            f"the node of autograd was built, and cannot be kept: {error}; LACIS_CACHE_DIR names a folder"
        ) from None
    except OSError as error:
        raise Error(
            f"the node of autograd was built, and cannot be kept: {error}; LACIS_CACHE_DIR names a folder"
        ) from error
    return str(path)

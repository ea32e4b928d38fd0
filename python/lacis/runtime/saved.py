# SPDX-License-Identifier: Apache-2.0
"""Saves the kernels of a built model for another process (`LACIS_KERNEL_PATH`)."""

from __future__ import annotations

import os

from ..nn import SparseModule


def save_kernels(model, path: str | os.PathLike) -> None:
    """Write every kernel that the sparse layers of `model` run into the folder `path`."""
    from .kernels import save

    modules = [m for m in model.modules() if isinstance(m, SparseModule) and m.target != "eager"]
    kernels = {kernel.key: kernel.loaded for kernel in (module.bind() for module in modules)}
    save(kernels.values(), path)

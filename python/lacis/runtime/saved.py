# SPDX-License-Identifier: Apache-2.0
"""Saves the kernels of a built model for another process (`LACIS_KERNEL_PATH`)."""

from __future__ import annotations

import os

from ..nn import SparseModule


def save_kernels(model, path: str | os.PathLike) -> None:
    """Write every kernel that the sparse layers of `model` run into the folder `path`: those of gradients where they
    are compiled, and those of the dtypes that autocast asked for."""
    from .kernels import save

    modules = [m for m in model.modules() if isinstance(m, SparseModule) and m.target != "eager"]
    families = [family for module in modules for family in module.family().compiled()]
    kernels = {family.key: family.kernel.loaded for family in families}
    save(kernels, path)
